"""What a host's own process imports to parse: `from torch_npu.profiler.profiler import analyse`."""

from torch_npu.profiler.analysed import analyse

__all__ = ["analyse"]
