#include "tests/support/ptx/cuda_runtime.hpp"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include <cxxabi.h>
#include <fatbinary_section.h>

#include "tests/support/ptx/fat_binary.hpp"

namespace cudp::ptx {

namespace {

using Clocks = std::chrono::steady_clock;

const char* environment(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

/// An object's device code. Parsed when a kernel of it is first asked for.
class LoadedModule {
 public:
  LoadedModule(unsigned number, const void* fat_binary)
      : number_(number), fat_binary_(fat_binary) {}

  /// Throws Fault.
  Module& parsed() {
    if (module_) return *module_;
    std::string text = ptx_of_fat_binary(fat_binary_);
    if (const char* folder = std::getenv("CUDP_PTX_REPLACE"))
      if (std::ifstream file(folder + name(), std::ios::binary); file) {
        std::ostringstream content;
        content << file.rdbuf();
        text = content.str();
      }
    module_ = std::make_unique<Module>(std::move(text));
    return *module_;
  }
  /// Throws Fault.
  void save(const char* folder) const {
    std::ofstream(folder + name(), std::ios::binary) << ptx_of_fat_binary(fat_binary_);
  }
  unsigned number() const { return number_; }

 private:
  std::string name() const { return "/" + std::to_string(number_) + ".ptx"; }

  unsigned number_;
  const void* fat_binary_;
  std::unique_ptr<Module> module_;
};

/// A kernel as one object registered it.
struct Registered {
  LoadedModule* module = nullptr;
  std::string name;
  Kernel* kernel = nullptr;  ///< null until it is asked for

  /// Throws Fault.
  Kernel& parsed() {
    if (kernel == nullptr) kernel = module->parsed().find(name);
    if (kernel == nullptr) throw Fault("ptx: no kernel " + name + " in its own module");
    return *kernel;
  }
};

using Work = std::function<void(u32 first_interval, KnownOrder&)>;

/// What a graph is made of, in an order in which it may run.
struct Node {
  Work work;
  std::vector<u32> after;  ///< nodes
};
struct Graph {
  std::vector<Node> nodes;
};

struct Executable {
  std::vector<Node> nodes;
  std::vector<u32> lines;  ///< of the nodes; those that follow one another share one
  Clock ended;             ///< its last launch: two launches never overlap
};

struct Capture {
  Graph graph;
  const void* origin = nullptr;  ///< the stream in which it began
  std::thread::id thread;
  bool is_relaxed = false;
  bool is_invalid = false;
};

/// Work that what comes next is to follow, while a stream is captured.
using Frontier = std::vector<u32>;

struct Stream {
  u32 line = 0;
  Clock known;  ///< when all that was asked of it has ended
  unsigned number = 0;
  bool is_blocking = false;
  Capture* capture = nullptr;
  Frontier frontier;
};

struct Event {
  Clock known;
  Clocks::time_point time;
  bool is_recorded = false;
  Capture* capture = nullptr;
  Frontier frontier;
};

std::string readable(const std::string& name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string out = status == 0 ? text : name;
  std::free(text);
  return out;
}

class Runtime {
 public:
  /// Lives as long as the process: GoogleTest, too, keeps what it has to the end.
  static Runtime& get() {
    static auto* const runtime = new Runtime;
    return *runtime;
  }

  std::mutex mutex;

  // --- Errors ---

  /// What every function of the runtime does: one at a time, nothing after a fault.
  template <class F>
  cudaError_t answer(const F& f) {
    const std::lock_guard lock(mutex);
    cudaError_t e = lost_;
    if (e == cudaSuccess) {
      try {
        e = f();
      } catch (const Fault& fault) {
        report(fault);
        e = lost_;
      }
    }
    if (e != cudaSuccess) last_ = e;
    return e;
  }
  cudaError_t take_last() {
    const std::lock_guard lock(mutex);
    return std::exchange(last_, cudaSuccess);
  }
  /// Says on stderr why a call was refused that is no fault of the device's.
  static cudaError_t refuse(cudaError_t e, const std::string& why) {
    std::fprintf(stderr, "ptx: refused: %s\n", why.c_str());
    return e;
  }

  // --- Kernels ---

  LoadedModule* add_module(const void* fat_binary) {
    modules_.push_back(
        std::make_unique<LoadedModule>(static_cast<unsigned>(modules_.size()), fat_binary));
    return modules_.back().get();
  }
  void add_kernel(const void* stub, LoadedModule* module, const char* name) {
    kernels_[stub].push_back({module, name, nullptr});
  }
  /// A kernel that several objects have is registered by each, under one address where the linker
  /// kept one stub. Streams take turns: all kernels that the n-th stream launches are of the n-th
  /// module that has them, so that both are run, and what must agree in a step is of one module.
  Kernel* kernel(const void* stub, const Stream& stream) {
    const auto at = kernels_.find(stub);
    if (at == kernels_.end()) return nullptr;
    std::vector<Registered>& copies = at->second;
    return &copies[(stream.number + seed_) % copies.size()].parsed();
  }
  /// Null if there is no such kernel.
  std::vector<Registered>* copies(const void* stub) {
    const auto at = kernels_.find(stub);
    return at == kernels_.end() ? nullptr : &at->second;
  }

  // --- Streams ---

  Stream& stream(cudaStream_t s) {
    if (s == nullptr || s == cudaStreamLegacy) return default_;
    const auto at = streams_.find(s);
    if (at == streams_.end()) throw Fault("ptx: a stream is used that does not exist");
    return *at->second;
  }
  cudaStream_t new_stream(bool is_blocking) {
    auto s = std::make_unique<Stream>();
    s->line = history.new_line();
    s->number = ++streams_made_;
    s->is_blocking = is_blocking;
    const auto handle = reinterpret_cast<cudaStream_t>(s.get());
    streams_[handle] = std::move(s);
    return handle;
  }
  void remove_stream(cudaStream_t handle) {
    history.give_back(stream(handle).line);
    streams_.erase(handle);
  }

  cudaError_t enqueue(Stream& s, Work work) {
    if (s.capture != nullptr) {
      auto& nodes = s.capture->graph.nodes;
      nodes.push_back({std::move(work), s.frontier});
      s.frontier = {static_cast<u32>(nodes.size() - 1)};
      return cudaSuccess;
    }
    run(s.line, known_to(s), work, s.known);
    return cudaSuccess;
  }

  /// What has ended before what a stream does next.
  Clock known_to(const Stream& s) {
    Clock known = s.known;
    known.join(history.host());
    if (&s == &default_) {
      for (const auto& [handle, other] : streams_)
        if (other->is_blocking) known.join(other->known);
    } else if (s.is_blocking) {
      known.join(default_.known);
    }
    return known;
  }

  void launch(Executable& e, Stream& s) {
    Clock start = known_to(s);
    start.join(e.ended);
    std::vector<Clock> ended(e.nodes.size());
    Clock end = start;
    for (std::size_t i = 0; i < e.nodes.size(); ++i) {
      Clock known = start;
      for (const u32 before : e.nodes[i].after) known.join(ended[before]);
      run(e.lines[i], known, e.nodes[i].work, ended[i]);
      end.join(ended[i]);
    }
    e.ended = end;
    s.known.join(end);
  }

  /// This thread's capture that forbids calls which could wait; null if there is none.
  Capture* strict_capture() {
    for (const auto& c : captures_)
      if (!c->is_relaxed && c->thread == std::this_thread::get_id()) return c.get();
    return nullptr;
  }
  Capture* begin_capture() {
    captures_.push_back(std::make_unique<Capture>());
    return captures_.back().get();
  }
  /// No stream is in it any more.
  std::unique_ptr<Capture> end_capture(Capture* capture) {
    for (const auto& [handle, s] : streams_)
      if (s->capture == capture) {
        s->capture = nullptr;
        s->frontier.clear();
      }
    std::unique_ptr<Capture> ended;
    for (auto& c : captures_)
      if (c.get() == capture) ended = std::move(c);
    std::erase(captures_, nullptr);
    return ended;
  }
  /// Whether all that a capture recorded comes before what its first stream would do next.
  bool is_joined(const Capture& c, const Frontier& frontier) const {
    std::vector<bool> reached(c.graph.nodes.size());
    for (const u32 n : frontier) reached[n] = true;
    for (std::size_t i = c.graph.nodes.size(); i-- > 0;)
      if (reached[i])
        for (const u32 before : c.graph.nodes[i].after) reached[before] = true;
    return std::find(reached.begin(), reached.end(), false) == reached.end();
  }

  std::unique_ptr<Executable> instantiate(const Graph& g) {
    auto e = std::make_unique<Executable>();
    e->nodes = g.nodes;
    std::vector<bool> is_followed(g.nodes.size());
    for (const Node& n : g.nodes) {
      if (n.after.size() == 1 && !is_followed[n.after.front()]) {
        is_followed[n.after.front()] = true;
        e->lines.push_back(e->lines[n.after.front()]);
      } else {
        e->lines.push_back(history.new_line());
      }
    }
    return e;
  }
  void remove(const Executable& e) {
    for (const u32 line : std::set<u32>(e.lines.begin(), e.lines.end())) history.give_back(line);
  }

  const Device& device() const { return device_; }
  DeviceMemory memory;
  Interpreter interpreter;
  History history;
  std::vector<std::tuple<Dim, Dim, std::size_t, cudaStream_t>> configurations;

 private:
  Runtime()
      : memory(device_named(environment("CUDP_PTX_DEVICE", "H100")).memory),
        interpreter(device_named(environment("CUDP_PTX_DEVICE", "H100")), memory,
                    std::strtoull(environment("CUDP_PTX_SEED", "1"), nullptr, 10)),
        device_(interpreter.device()),
        seed_(std::strtoull(environment("CUDP_PTX_SEED", "1"), nullptr, 10)) {
    default_.line = history.new_line();
    default_.is_blocking = true;
    if (on_exit([](int status, void*) { get().at_exit(status); }, nullptr) != 0) std::abort();
  }

  void run(u32 line, const Clock& known, const Work& work, Clock& ended) {
    if (lost_ != cudaSuccess) return;
    KnownOrder order(history, known);
    const u32 first = interpreter.next_interval();
    ended = history.begin(line, known, first);
    const auto start = Clocks::now();
    try {
      work(first, order);
    } catch (const Fault& fault) {  // as on a device, it is told by what is called next
      report(fault);
    }
    seconds_ += std::chrono::duration<double>(Clocks::now() - start).count();
  }

  void report(const Fault& fault) {
    ++faults_;
    lost_ = cudaErrorLaunchFailure;
    std::string_view what = fault.what();
    if (what.starts_with("ptx: ")) what.remove_prefix(5);
    std::fprintf(stderr, "ptx: FAULT: %.*s\n", static_cast<int>(what.size()), what.data());
  }

  void at_exit(int status) {
    const Totals& t = interpreter.totals();
    u64 notes = 0;
    for (const auto& [text, count] : interpreter.notes()) {
      std::fprintf(stderr, "ptx: note: %s (%" PRIu64 " times)\n", text.c_str(), count);
      notes += count;
    }
    if (t.launches > 0 || faults_ > 0)
      std::fprintf(stderr,
                   "ptx: nvcc's PTX, run by an interpreter as %s, seed %" PRIu64 ": %" PRIu64
                   " launches, %" PRIu64
                   " blocks, %.4g thread instructions, %.1f s (%.3g a "
                   "second), %" PRIu64 " faults, %" PRIu64 " notes\n",
                   device_.name.c_str(), seed_, t.launches, t.blocks,
                   static_cast<double>(t.thread_instructions), seconds_,
                   seconds_ > 0 ? static_cast<double>(t.thread_instructions) / seconds_ : 0.0,
                   faults_, notes);
    if (const char* path = std::getenv("CUDP_PTX_LAUNCHES")) {
      std::ostringstream lines;
      for (const auto& [stub, copies] : kernels_)
        for (const Registered& k : copies)
          lines << (k.kernel != nullptr ? k.kernel->launches : 0) << ' ' << k.module->number()
                << ' ' << readable(k.name) << '\n';
      std::ofstream(path, std::ios::app) << lines.str();
    }
    if (const char* folder = std::getenv("CUDP_PTX_SAVE"))
      for (const auto& m : modules_) m->save(folder);
    if (status == 0 && (faults_ > 0 || notes > 0)) {
      std::fflush(nullptr);
      std::_Exit(kPtxFault);
    }
  }

  const Device& device_;
  u64 seed_;
  cudaError_t last_ = cudaSuccess;
  cudaError_t lost_ = cudaSuccess;  ///< what all calls return after a fault
  u64 faults_ = 0;
  double seconds_ = 0.0;
  std::vector<std::unique_ptr<LoadedModule>> modules_;
  std::map<const void*, std::vector<Registered>> kernels_;  // by stub
  Stream default_;
  unsigned streams_made_ = 0;
  std::map<cudaStream_t, std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Capture>> captures_;
};

Runtime& runtime() { return Runtime::get(); }

Executable* executable(cudaGraphExec_t e) { return reinterpret_cast<Executable*>(e); }
Graph* graph(cudaGraph_t g) { return reinterpret_cast<Graph*>(g); }
Event* event(cudaEvent_t e) { return reinterpret_cast<Event*>(e); }

/// Calls that wait for the device, or may, are refused while something is recorded, and end that.
template <class F>
cudaError_t answer_outside_capture(const F& f) {
  return runtime().answer([&] {
    Capture* const capture = runtime().strict_capture();
    if (capture == nullptr) return f();
    capture->is_invalid = true;
    return Runtime::refuse(cudaErrorStreamCaptureUnsupported,
                           "memory is made, released or waited for while a graph is recorded");
  });
}

Work touching(std::function<void(const StreamWork&)> work) {
  return [work = std::move(work)](u32 first, KnownOrder& order) {
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
                             std::memset(o.writes(static_cast<u8*>(p), bytes, "a fill"), value,
                                         bytes);
                           }));
}

cudaError_t launch_kernel(const void* stub, dim3 grid, dim3 block, void** arguments,
                          std::size_t shared, cudaStream_t stream) {
  return runtime().answer([&] {
    Stream& s = runtime().stream(stream);
    Kernel* const kernel = runtime().kernel(stub, s);
    if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
    Launch l{.kernel = kernel,
             .grid = {grid.x, grid.y, grid.z},
             .block = {block.x, block.y, block.z},
             .dynamic_shared = static_cast<u32>(shared),
             .parameters = std::vector<u8>(kernel->parameter_bytes)};
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
    return runtime().enqueue(
        s, [l = std::move(l)](u32, KnownOrder& order) { runtime().interpreter.run(l, order); });
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
    for (Registered& r : *copies) {
      const Kernel& k = r.parsed();
      a->sharedSizeBytes = std::max<std::size_t>(a->sharedSizeBytes, k.static_shared_bytes);
      a->maxThreadsPerBlock = std::min(a->maxThreadsPerBlock, static_cast<int>(k.max_threads));
      a->maxDynamicSharedSizeBytes = static_cast<int>(k.max_dynamic_shared);
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
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return runtime().answer([&] { return copy(to, from, bytes, kind, stream); });
}
cudaError_t cudaMemsetAsync(void* p, int value, std::size_t bytes, cudaStream_t stream) {
  return runtime().answer([&] { return fill(p, value, bytes, stream); });
}

// --- Streams and events ---

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return runtime().answer([&] {
    if (flags != cudaStreamDefault && flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
    *stream = runtime().new_stream(flags == cudaStreamDefault);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return runtime().answer([&] {
    runtime().remove_stream(stream);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return answer_outside_capture([&] {
    Stream& s = runtime().stream(stream);
    runtime().history.host_waits_for(runtime().known_to(s));
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceSynchronize() {
  return answer_outside_capture([&] {
    runtime().history.host_waits_for_all();
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) {
  return runtime().answer([&] {
    *e = reinterpret_cast<cudaEvent_t>(new Event);
    return cudaSuccess;
  });
}
cudaError_t cudaEventCreate(cudaEvent_t* e) { return cudaEventCreateWithFlags(e, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t e) {
  return runtime().answer([&] {
    delete event(e);
    return cudaSuccess;
  });
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t stream) {
  return runtime().answer([&] {
    Stream& s = runtime().stream(stream);
    *event(e) = {.known = runtime().known_to(s),
                 .time = Clocks::now(),
                 .is_recorded = true,
                 .capture = s.capture,
                 .frontier = s.frontier};
    return cudaSuccess;
  });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t e, unsigned) {
  return runtime().answer([&] {
    Stream& s = runtime().stream(stream);
    const Event& from = *event(e);
    if (from.capture == nullptr) {
      if (s.capture != nullptr) {
        s.capture->is_invalid = true;
        return Runtime::refuse(cudaErrorStreamCaptureIsolation,
                               "what is recorded waits for what is not");
      }
      if (from.is_recorded) s.known.join(from.known);
      return cudaSuccess;
    }
    if (s.capture == nullptr) {  // it is recorded, too, from here on
      s.capture = from.capture;
      s.frontier = from.frontier;
      return cudaSuccess;
    }
    if (s.capture != from.capture) return cudaErrorStreamCaptureMerge;
    std::set<u32> after(s.frontier.begin(), s.frontier.end());
    after.insert(from.frontier.begin(), from.frontier.end());
    s.frontier.assign(after.begin(), after.end());
    return cudaSuccess;
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  return answer_outside_capture([&] {
    if (event(e)->capture != nullptr) return cudaErrorCapturedEvent;
    runtime().history.host_waits_for(event(e)->known);
    return cudaSuccess;
  });
}
/// Milliseconds of this process: no device's.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return runtime().answer([&] {
    if (!event(begin)->is_recorded || !event(end)->is_recorded)
      return cudaErrorInvalidResourceHandle;
    *milliseconds =
        std::chrono::duration<float, std::milli>(event(end)->time - event(begin)->time).count();
    return cudaSuccess;
  });
}

// --- Graphs ---

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return runtime().answer([&] {
    if (stream == nullptr || stream == cudaStreamLegacy) return cudaErrorStreamCaptureUnsupported;
    Stream& s = runtime().stream(stream);
    if (s.capture != nullptr) return cudaErrorIllegalState;
    s.capture = runtime().begin_capture();
    s.capture->origin = &s;
    s.capture->thread = std::this_thread::get_id();
    s.capture->is_relaxed = mode == cudaStreamCaptureModeRelaxed;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* to) {
  return runtime().answer([&] {
    *to = nullptr;
    Stream& s = runtime().stream(stream);
    if (s.capture == nullptr) return cudaErrorIllegalState;
    if (s.capture->origin != &s) return cudaErrorStreamCaptureUnmatched;
    const Frontier frontier = s.frontier;
    const auto capture = runtime().end_capture(s.capture);
    if (capture->is_invalid) return cudaErrorStreamCaptureInvalidated;
    if (!runtime().is_joined(*capture, frontier)) return cudaErrorStreamCaptureUnjoined;
    *to = reinterpret_cast<cudaGraph_t>(new Graph(std::move(capture->graph)));
    return cudaSuccess;
  });
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* e, cudaGraph_t g, unsigned long long) {
  return runtime().answer([&] {
    *e = reinterpret_cast<cudaGraphExec_t>(runtime().instantiate(*graph(g)).release());
    return cudaSuccess;
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) {
  return runtime().answer([&] {
    delete graph(g);
    return cudaSuccess;
  });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e) {
  return runtime().answer([&] {
    runtime().remove(*executable(e));
    delete executable(e);
    return cudaSuccess;
  });
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t stream) {
  return runtime().answer([&] {
    runtime().launch(*executable(e), runtime().stream(stream));
    return cudaSuccess;
  });
}

// --- Errors ---

cudaError_t cudaGetLastError() { return runtime().take_last(); }

const char* cudaGetErrorName(cudaError_t e) {
  switch (e) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorMissingConfiguration:
      return "cudaErrorMissingConfiguration";
    case cudaErrorInvalidDeviceFunction:
      return "cudaErrorInvalidDeviceFunction";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorIllegalState:
      return "cudaErrorIllegalState";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureMerge:
      return "cudaErrorStreamCaptureMerge";
    case cudaErrorStreamCaptureUnmatched:
      return "cudaErrorStreamCaptureUnmatched";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorStreamCaptureIsolation:
      return "cudaErrorStreamCaptureIsolation";
    case cudaErrorCapturedEvent:
      return "cudaErrorCapturedEvent";
    default:
      return "an error that the interpreter has no name for";
  }
}
const char* cudaGetErrorString(cudaError_t e) {
  switch (e) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    default:
      return cudaGetErrorName(e);
  }
}

}  // extern "C"
