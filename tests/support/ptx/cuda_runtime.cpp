#include "tests/support/ptx/cuda_runtime.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include <fatbinary_section.h>

#include "tests/support/ptx/runtime.hpp"

namespace cudp::ptx {
namespace {

Work touching(std::function<void(const StreamWork&)> work) {
  return [work = std::move(work)](u32 first, KnownOperations& order) {
    order.first = first;
    const Toucher who{.interval = first};
    work(StreamWork(runtime().memory, order, who));
  };
}

bool is_on_device(const void* p) {
  return runtime().memory.find(reinterpret_cast<u64>(p)) != nullptr;
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                 cudaStream_t handle) {
  Stream& s = runtime().stream(handle);
  if (kind == cudaMemcpyDefault) {
    const bool up = is_on_device(to);
    kind = is_on_device(from) ? (up ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost)
                              : (up ? cudaMemcpyHostToDevice : cudaMemcpyHostToHost);
  }
  const bool reads_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const bool writes_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  if (bytes == 0) return cudaSuccess;
  if (reads_device != is_on_device(from) || writes_device != is_on_device(to))
    return Runtime::refuse(cudaErrorInvalidValue,
                           "a copy, one of whose pointers is not where its direction says");
  if (s.capture != nullptr && kind != cudaMemcpyDeviceToDevice) {
    s.capture->is_invalid = true;
    return Runtime::refuse(cudaErrorStreamCaptureUnsupported,
                           "pageable memory is copied while a graph is recorded");
  }
  return runtime().enqueue(s, touching([=](const StreamWork& o) {
                             const auto* const source = static_cast<const u8*>(from);
                             auto* const target = static_cast<u8*>(to);
                             std::memmove(
                                 writes_device ? o.writes(target, bytes, "a copy") : target,
                                 reads_device ? o.reads(source, bytes, "a copy") : source, bytes);
                           }));
}

cudaError_t fill(void* p, int value, std::size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (!is_on_device(p))
    return Runtime::refuse(cudaErrorInvalidValue, "memory is filled that is not the device's");
  return runtime().enqueue(runtime().stream(stream), touching([=](const StreamWork& o) {
                             u8* const to = o.writes(static_cast<u8*>(p), bytes, "a fill");
                             if (value == 0)
                               clear(to, bytes);
                             else
                               std::memset(to, value, bytes);
                           }));
}

cudaError_t launch_kernel(const void* stub, dim3 grid, dim3 block, void** arguments,
                          std::size_t shared, cudaStream_t stream, bool is_dependent = false) {
  return runtime().answer([&] {
    Stream& s = runtime().stream(stream);
    // As drivers before CUDA 12.3: a kernel is loaded when it is first asked for.
    const auto* const copies = runtime().copies(stub);
    if (s.capture != nullptr && copies != nullptr &&
        std::ranges::any_of(*copies, [](const Registered& r) { return r.kernel == nullptr; })) {
      s.capture->is_invalid = true;
      return Runtime::refuse(cudaErrorStreamCaptureUnsupported,
                             "a kernel is loaded while a graph is recorded");
    }
    Kernel* const kernel = runtime().kernel(stub, s);
    if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
    Launch l{.kernel = kernel,
             .grid = {grid.x, grid.y, grid.z},
             .block = {block.x, block.y, block.z},
             .dynamic_shared = static_cast<u32>(shared),
             .parameters = std::vector<u8>(kernel->parameter_bytes),
             .is_dependent = is_dependent};
    const u64 threads = l.block.count();
    const std::string name = readable(kernel->name);
    if (l.grid.count() == 0 || threads == 0 || threads > 1024 || block.z > 64 ||
        grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
      return Runtime::refuse(cudaErrorInvalidConfiguration, name + ": no grid that a device has");
    if (threads > kernel->max_threads)
      return Runtime::refuse(cudaErrorInvalidValue,
                             name + ": " + std::to_string(threads) +
                                 " threads in a block, compiled for at most " +
                                 std::to_string(kernel->max_threads));
    constexpr u32 kUsual = 48 * 1024;  // of static and dynamic memory, unless more was asked for
    const u32 most =
        kernel->max_dynamic_shared > kUsual ? runtime().device().shared_per_block : kUsual;
    const u32 fixed = kernel->static_shared_bytes;
    const u32 allowed = std::min(kernel->max_dynamic_shared, most > fixed ? most - fixed : 0);
    if (shared > allowed)
      return Runtime::refuse(cudaErrorInvalidValue,
                             name + ": " + std::to_string(shared) +
                                 " bytes of dynamic shared memory beside " + std::to_string(fixed) +
                                 " of its own, allowed are " + std::to_string(allowed));
    for (std::size_t i = 0; i < kernel->parameters.size(); ++i)
      std::memcpy(l.parameters.data() + kernel->parameters[i].at, arguments[i],
                  kernel->parameters[i].bytes);
    return runtime().enqueue(s, [l = std::move(l)](u32, KnownOperations& order) {
      runtime().interpreter.run(l, order);
    });
  });
}

}  // namespace

void* StreamWork::bytes(const void* p, std::size_t n, Access kind, const std::string& what) const {
  return memory_.range(reinterpret_cast<u64>(p), n, kind, who_, order_, what);
}

cudaError_t enqueue(cudaStream_t stream, std::function<void(const StreamWork&)> work) {
  return runtime().answer(
      [&] { return runtime().enqueue(runtime().stream(stream), touching(std::move(work))); });
}

}  // namespace cudp::ptx

using namespace cudp::ptx;

// --- What objects call when they are loaded, and to launch ---

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  const auto* const w = static_cast<const __fatBinC_Wrapper_t*>(wrapper);
  if (w->magic != FATBINC_MAGIC) {
    std::fputs("ptx: an object registers what is no fat binary\n", stderr);
    std::abort();
  }
  return reinterpret_cast<void**>(runtime().add_module(w->data));
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void** module, const char* stub, char*, const char* name, int, void*,
                            void*, void*, void*, int*) {
  runtime().add_kernel(stub, reinterpret_cast<LoadedModule*>(module), name);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared,
                                     cudaStream_t stream) {
  const std::lock_guard lock(runtime().mutex);
  runtime().configurations.emplace_back(Dim{grid.x, grid.y, grid.z}, Dim{block.x, block.y, block.z},
                                        shared, stream);
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  const std::lock_guard lock(runtime().mutex);
  if (runtime().configurations.empty()) return cudaErrorMissingConfiguration;
  const auto [g, b, bytes, s] = runtime().configurations.back();
  runtime().configurations.pop_back();
  *grid = dim3(g.x, g.y, g.z);
  *block = dim3(b.x, b.y, b.z);
  *shared = bytes;
  *static_cast<cudaStream_t*>(stream) = s;
  return cudaSuccess;
}

// A kernel's handle is the address of its stub: which module's copy is launched, its stream says.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(stub));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared, cudaStream_t stream) {
  return launch_kernel(kernel, grid, block, arguments, shared, stream);
}
cudaError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared, cudaStream_t stream) {
  return launch_kernel(stub, grid, block, arguments, shared, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* c, const void* stub, void** arguments) {
  bool is_dependent = false;
  for (unsigned n = 0; n < c->numAttrs; ++n) {
    if (c->attrs[n].id != cudaLaunchAttributeProgrammaticStreamSerialization)
      return Runtime::refuse(cudaErrorNotSupported, "an attribute of a launch that is not known");
    is_dependent = c->attrs[n].val.programmaticStreamSerializationAllowed != 0;
  }
  return launch_kernel(stub, c->gridDim, c->blockDim, arguments, c->dynamicSmemBytes, c->stream,
                       is_dependent);
}

// --- Devices ---

cudaError_t cudaGetDeviceCount(int* count) {
  return runtime().answer([&] {
    *count = 1;
    return cudaSuccess;
  });
}
cudaError_t cudaSetDevice(int device) {
  return runtime().answer([&] { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; });
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  return runtime().answer([&] {
    if (device != 0) return cudaErrorInvalidDevice;
    const Device& d = runtime().device();
    *p = {};
    std::snprintf(p->name, sizeof p->name, "%s as an interpreter of PTX states it", d.name.c_str());
    p->major = d.major;
    p->minor = d.minor;
    p->totalGlobalMem = d.memory;
    p->multiProcessorCount = static_cast<int>(d.multiprocessors);
    p->sharedMemPerBlock = std::size_t{48} * 1024;
    p->sharedMemPerBlockOptin = d.shared_per_block;
    p->sharedMemPerMultiprocessor = d.shared_per_multiprocessor;
    p->maxThreadsPerMultiProcessor = static_cast<int>(d.threads_per_multiprocessor);
    p->maxBlocksPerMultiProcessor = static_cast<int>(d.blocks_per_multiprocessor);
    p->maxThreadsPerBlock = 1024;
    p->warpSize = kLanes;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return runtime().answer([&] {
    if (device != 0) return cudaErrorInvalidDevice;
    const Device& d = runtime().device();
    const auto of = [&]() -> u64 {
      switch (attribute) {
        case cudaDevAttrMultiProcessorCount:
          return d.multiprocessors;
        case cudaDevAttrMaxSharedMemoryPerBlock:
          return 48 * 1024;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin:
          return d.shared_per_block;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
          return d.shared_per_multiprocessor;
        case cudaDevAttrMaxThreadsPerMultiProcessor:
          return d.threads_per_multiprocessor;
        case cudaDevAttrMaxBlocksPerMultiprocessor:
          return d.blocks_per_multiprocessor;
        case cudaDevAttrMaxThreadsPerBlock:
          return 1024;
        case cudaDevAttrWarpSize:
          return kLanes;
        case cudaDevAttrComputeCapabilityMajor:
          return static_cast<u64>(d.major);
        case cudaDevAttrComputeCapabilityMinor:
          return static_cast<u64>(d.minor);
        default:
          throw Fault("ptx: attribute " + std::to_string(attribute) + " of a device: not stated");
      }
    };
    *value = static_cast<int>(of());
    return cudaSuccess;
  });
}

// --- Kernels ---

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a, const void* stub) {
  return runtime().answer([&] {
    auto* const copies = runtime().copies(stub);
    if (copies == nullptr) return cudaErrorInvalidDeviceFunction;
    *a = {};
    a->maxThreadsPerBlock = 1024;
    a->ptxVersion = 1000;
    for (Registered& r : *copies) {
      const Kernel& k = r.parsed();
      a->sharedSizeBytes = std::max<std::size_t>(a->sharedSizeBytes, k.static_shared_bytes);
      a->maxThreadsPerBlock = std::min(a->maxThreadsPerBlock, static_cast<int>(k.max_threads));
      a->maxDynamicSharedSizeBytes = static_cast<int>(k.max_dynamic_shared);
      a->ptxVersion = std::min(a->ptxVersion, static_cast<int>(k.module->target()));
    }
    return cudaSuccess;
  });
}
cudaError_t cudaFuncSetAttribute(const void* stub, cudaFuncAttribute attribute, int value) {
  return runtime().answer([&] {
    auto* const copies = runtime().copies(stub);
    if (copies == nullptr) return cudaErrorInvalidDeviceFunction;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize)
      throw Fault("ptx: attribute " + std::to_string(attribute) + " of a kernel: not known");
    for (Registered& r : *copies) {
      Kernel& k = r.parsed();
      if (value < 0 ||
          static_cast<u32>(value) + k.static_shared_bytes > runtime().device().shared_per_block)
        return cudaErrorInvalidValue;
      k.max_dynamic_shared = static_cast<u32>(value);
    }
    return cudaSuccess;
  });
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* stub,
                                                          int threads, std::size_t shared) {
  return runtime().answer([&] {
    auto* const copies = runtime().copies(stub);
    if (copies == nullptr) return cudaErrorInvalidDeviceFunction;
    u32 least = ~0u;  // by threads and shared memory: registers are ptxas' choice
    for (Registered& r : *copies)
      least =
          std::min(least, blocks_in_flight(runtime().device(), r.parsed(),
                                           static_cast<u32>(threads), static_cast<u32>(shared)));
    *blocks = static_cast<int>(least);
    return cudaSuccess;
  });
}

// --- Memory ---

cudaError_t cudaMalloc(void** p, std::size_t bytes) {
  return answer_outside_capture([&] {
    *p = nullptr;
    if (bytes == 0) return cudaSuccess;
    const u64 address = runtime().memory.allocate(bytes);
    *p = reinterpret_cast<void*>(address);
    return address != 0 ? cudaSuccess : cudaErrorMemoryAllocation;
  });
}
cudaError_t cudaFree(void* p) {
  return answer_outside_capture([&] {
    if (p == nullptr) return cudaSuccess;
    return runtime().memory.release(reinterpret_cast<u64>(p)) ? cudaSuccess : cudaErrorInvalidValue;
  });
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return runtime().answer([&] {
    *total = runtime().memory.capacity();
    *free = *total - runtime().memory.in_use();
    return cudaSuccess;
  });
}
/// Copies read it when the stream gets to them, as those of all host memory do here.
cudaError_t cudaMallocHost(void** p, std::size_t bytes) {
  return answer_outside_capture([&] {
    *p = bytes > 0 ? std::malloc(bytes) : nullptr;
    return *p != nullptr || bytes == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
  });
}
cudaError_t cudaFreeHost(void* p) {
  return answer_outside_capture([&] {
    std::free(p);
    return cudaSuccess;
  });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return runtime().answer([&] { return copy(to, from, bytes, kind, stream); });
}
cudaError_t cudaMemsetAsync(void* p, int value, std::size_t bytes, cudaStream_t stream) {
  return runtime().answer([&] { return fill(p, value, bytes, stream); });
}

}  // extern "C"
