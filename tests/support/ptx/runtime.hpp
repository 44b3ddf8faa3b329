#pragma once
// The state of a CUDA runtime that is none: modules, streams, events, graphs, and what went wrong.
// Its functions, which objects call, are cuda_runtime.cpp and cuda_streams.cpp.
#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/ptx/cuda_runtime.hpp"

namespace cudp::ptx {

using Clocks = std::chrono::steady_clock;

/// Device code of an object file. It is parsed when one of its kernels is first needed.
class LoadedModule {
 public:
  LoadedModule(unsigned number, const void* fat_binary)
      : number_(number), fat_binary_(fat_binary) {}

  /// Returns the parsed module. Throws Fault.
  Module& parsed();
  /// Writes the module's PTX to a file in the folder. Throws Fault.
  void save(const char* folder) const;
  unsigned number() const { return number_; }

 private:
  std::string name() const { return "/" + std::to_string(number_) + ".ptx"; }

  unsigned number_;
  const void* fat_binary_;
  std::unique_ptr<Module> module_;
};

/// A kernel that an object file has registered.
struct Registered {
  LoadedModule* module = nullptr;
  std::string name;
  Kernel* kernel = nullptr;  ///< null until it is needed

  /// Returns the parsed kernel. Throws Fault.
  Kernel& parsed();
};

using Work = std::function<void(u32 first_interval, KnownOperations&)>;

/// One operation of a graph. Nodes are stored in an order in which they may run.
struct Node {
  Work work;
  std::vector<u32> after;  ///< indices of nodes that must run before it
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

/// Nodes after which the next captured operation of a stream must run.
using Frontier = std::vector<u32>;

struct Stream {
  u32 line = 0;
  Clock known;  ///< clock when all its operations have ended
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

/// Returns a kernel's name demangled.
std::string readable(const std::string& name);

class Runtime {
 public:
  /// Returns the runtime, which lives as long as the process.
  static Runtime& get() {
    static auto* const runtime = new Runtime;
    return *runtime;
  }

  std::mutex mutex;

  // --- Errors ---

  /// Calls f for a function of the runtime: one call at a time, and none after a fault.
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
  cudaError_t take_last();
  /// Returns e, and writes to stderr why a call was refused.
  static cudaError_t refuse(cudaError_t e, const std::string& why);

  // --- Kernels ---

  LoadedModule* add_module(const void* fat_binary) {
    modules_.push_back(
        std::make_unique<LoadedModule>(static_cast<unsigned>(modules_.size()), fat_binary));
    return modules_.back().get();
  }
  void add_kernel(const void* stub, LoadedModule* module, const char* name) {
    kernels_[stub].push_back({module, name, nullptr});
  }
  /// Returns the kernel of a stub for a launch in this stream. A kernel in several object files is
  /// registered by each, under one address if the linker kept one stub. The n-th stream uses the
  /// n-th module that has the kernel, so that all copies are tested, and the kernels of one step
  /// are of one module.
  Kernel* kernel(const void* stub, const Stream& stream);
  /// Returns all registered copies of a kernel; null if there is none.
  std::vector<Registered>* copies(const void* stub) {
    const auto at = kernels_.find(stub);
    return at == kernels_.end() ? nullptr : &at->second;
  }

  // --- Streams ---

  Stream& stream(cudaStream_t s);
  cudaStream_t new_stream(bool is_blocking);
  void remove_stream(cudaStream_t handle);

  cudaError_t enqueue(Stream& s, Work work);

  /// Returns the clock of everything that ends before the stream's next operation.
  Clock known_to(const Stream& s);

  void launch(Executable& e, Stream& s);

  /// Returns this thread's capture during which calls that may wait are forbidden; null if there is
  /// none.
  Capture* strict_capture();
  Capture* begin_capture() {
    captures_.push_back(std::make_unique<Capture>());
    return captures_.back().get();
  }
  /// Ends a capture: no stream is part of it any more.
  std::unique_ptr<Capture> end_capture(Capture* capture);
  /// Returns whether all recorded operations of a capture precede the next operation of its first
  /// stream.
  bool is_joined(const Capture& c, const Frontier& frontier) const;

  std::unique_ptr<Executable> instantiate(const Graph& g);
  void remove(const Executable& e);

  const Device& device() const { return device_; }
  DeviceMemory memory;
  Interpreter interpreter;
  History history;
  std::vector<std::tuple<Dim, Dim, std::size_t, cudaStream_t>> configurations;

 private:
  Runtime();

  void run(u32 line, const Clock& known, const Work& work, Clock& ended);

  void report(const Fault& fault);

  void at_exit(int status);

  const Device& device_;
  u64 seed_;
  cudaError_t last_ = cudaSuccess;
  cudaError_t lost_ = cudaSuccess;  ///< what all calls return after a fault
  u64 faults_ = 0;
  double seconds_ = 0.0;
  std::map<u32, u32> last_of_line_;  // first interval of the last operation of each line
  std::vector<std::unique_ptr<LoadedModule>> modules_;
  std::map<const void*, std::vector<Registered>> kernels_;  // by stub
  Stream default_;
  unsigned streams_made_ = 0;
  std::map<cudaStream_t, std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Capture>> captures_;
};

inline Runtime& runtime() { return Runtime::get(); }

inline Executable* executable(cudaGraphExec_t e) { return reinterpret_cast<Executable*>(e); }
inline Graph* graph(cudaGraph_t g) { return reinterpret_cast<Graph*>(g); }
inline Event* event(cudaEvent_t e) { return reinterpret_cast<Event*>(e); }

/// Calls f unless a capture is in progress: then refuses the call, which may wait for the device,
/// and invalidates the capture.
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

}  // namespace cudp::ptx
