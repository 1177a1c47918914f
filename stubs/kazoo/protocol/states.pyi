class ZnodeStat:
    version: int
