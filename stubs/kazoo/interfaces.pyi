from typing import Generic, TypeVar

_T_co = TypeVar("_T_co", covariant=True)

class IAsyncResult(Generic[_T_co]):
    def get(self, block: bool = ..., timeout: float | None = ...) -> _T_co: ...
