class ACL:
    perms: int

def make_digest_acl(username: str, password: str, **rights: bool) -> ACL: ...
