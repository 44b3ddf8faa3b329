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

/// An object's device code. Parsed when a kernel of it is first asked for.
class LoadedModule {
 public:
  LoadedModule(unsigned number, const void* fat_binary)
      : number_(number), fat_binary_(fat_binary) {}

  /// Throws Fault.
  Module& parsed();
  /// Throws Fault.
  void save(const char* folder) const;
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
  Kernel& parsed();
};

using Work = std::function<void(u32 first_interval, KnownOperations&)>;

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

/// A kernel's name as people write it.
std::string readable(const std::string& name);

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
  cudaError_t take_last();
  /// Says on stderr why a call was refused that is no fault of the device's.
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
  /// A kernel that several objects have is registered by each, under one address where the linker
  /// kept one stub. Streams take turns: all kernels that the n-th stream launches are of the n-th
  /// module that has them, so that both are run, and what must agree in a step is of one module.
  Kernel* kernel(const void* stub, const Stream& stream);
  /// Null if there is no such kernel.
  std::vector<Registered>* copies(const void* stub) {
    const auto at = kernels_.find(stub);
    return at == kernels_.end() ? nullptr : &at->second;
  }

  // --- Streams ---

  Stream& stream(cudaStream_t s);
  cudaStream_t new_stream(bool is_blocking);
  void remove_stream(cudaStream_t handle);

  cudaError_t enqueue(Stream& s, Work work);

  /// What has ended before what a stream does next.
  Clock known_to(const Stream& s);

  void launch(Executable& e, Stream& s);

  /// This thread's capture that forbids calls which could wait; null if there is none.
  Capture* strict_capture();
  Capture* begin_capture() {
    captures_.push_back(std::make_unique<Capture>());
    return captures_.back().get();
  }
  /// No stream is in it any more.
  std::unique_ptr<Capture> end_capture(Capture* capture);
  /// Whether all that a capture recorded comes before what its first stream would do next.
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

}  // namespace cudp::ptx
