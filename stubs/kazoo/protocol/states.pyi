class KeeperState:
    AUTH_FAILED: str

class ZnodeStat:
    version: int
