"""Addresses of fast matrix products for compiled code.

A product is called through its address, passed as a number: compiled code then stays valid between processes and
can be cached. Torch's library (MKL) is the fastest at hand on x86; scipy's is always there.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@functools.cache
def _torch_library() -> ctypes.CDLL | None:
    """Torch's shared library with BLAS symbols, without importing torch."""
    found = importlib.util.find_spec("torch")
    if found is None or not found.submodule_search_locations:
        return None
    folder = Path(found.submodule_search_locations[0]) / "lib"
    try:
        ctypes.CDLL(str(folder / "libc10.so"), ctypes.RTLD_GLOBAL)
        library = ctypes.CDLL(str(folder / "libtorch_cpu.so"))
        return library if hasattr(library, "sgemm_") and hasattr(library, "MKL_Set_Num_Threads_Local") else None
    except OSError:
        return None


@functools.cache
def product_addresses(library: str = "auto") -> tuple[int, int]:
    """Addresses of single- and double-precision products (sgemm, dgemm): "torch", "scipy", or whichever is best."""
    torch = _torch_library() if library in ("auto", "torch") else None
    if torch is not None:
        names = (torch.sgemm_, torch.dgemm_)
        single, double = (ctypes.cast(routine, ctypes.c_void_p).value or 0 for routine in names)
        return single, double
    return _scipy_address("sgemm"), _scipy_address("dgemm")


def _scipy_address(name: str) -> int:
    from scipy.linalg import cython_blas

    capsule = cython_blas.__pyx_capi__[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return int(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep MKL from starting threads here: products are small, and threads change rounding."""
    torch = _torch_library()
    if torch is None:
        yield
        return
    before = torch.MKL_Set_Num_Threads_Local(1)
    try:
        yield
    finally:
        torch.MKL_Set_Num_Threads_Local(before)
