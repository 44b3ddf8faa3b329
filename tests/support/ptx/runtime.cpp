#include "tests/support/ptx/runtime.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include <cxxabi.h>

#include "tests/support/ptx/fat_binary.hpp"

namespace cudp::ptx {
namespace {

const char* environment(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

/// Returns the newest PTX of a module that the device can run.
std::string ptx_for_device(const void* fat_binary) {
  const Device& d = runtime().device();
  return ptx_of_fat_binary(fat_binary, static_cast<u32>(10 * d.major + d.minor));
}

}  // namespace

Module& LoadedModule::parsed() {
  if (module_) return *module_;
  std::string text = ptx_for_device(fat_binary_);
  if (const char* folder = std::getenv("CUDP_PTX_REPLACE"))
    if (std::ifstream file(folder + name(), std::ios::binary); file) {
      std::ostringstream content;
      content << file.rdbuf();
      text = content.str();
    }
  module_ = std::make_unique<Module>(std::move(text));
  return *module_;
}

void LoadedModule::save(const char* folder) const {
  std::ofstream(folder + name(), std::ios::binary) << ptx_for_device(fat_binary_);
}

Kernel& Registered::parsed() {
  if (kernel == nullptr) kernel = module->parsed().find(name);
  if (kernel == nullptr) throw Fault("ptx: no kernel " + name + " in its own module");
  return *kernel;
}

std::string readable(const std::string& name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string out = status == 0 ? text : name;
  std::free(text);
  return out;
}

cudaError_t Runtime::take_last() {
  const std::lock_guard lock(mutex);
  return std::exchange(last_, cudaSuccess);
}

cudaError_t Runtime::refuse(cudaError_t e, const std::string& why) {
  std::fprintf(stderr, "ptx: refused: %s\n", why.c_str());
  return e;
}

Kernel* Runtime::kernel(const void* stub, const Stream& stream) {
  const auto at = kernels_.find(stub);
  if (at == kernels_.end()) return nullptr;
  std::vector<Registered>& copies = at->second;
  return &copies[(stream.number + seed_) % copies.size()].parsed();
}

Stream& Runtime::stream(cudaStream_t s) {
  if (s == nullptr || s == cudaStreamLegacy) return default_;
  const auto at = streams_.find(s);
  if (at == streams_.end()) throw Fault("ptx: a stream is used that does not exist");
  return *at->second;
}

cudaStream_t Runtime::new_stream(bool is_blocking) {
  auto s = std::make_unique<Stream>();
  s->line = history.new_line();
  s->number = ++streams_made_;
  s->is_blocking = is_blocking;
  const auto handle = reinterpret_cast<cudaStream_t>(s.get());
  streams_[handle] = std::move(s);
  return handle;
}

void Runtime::remove_stream(cudaStream_t handle) {
  history.give_back(stream(handle).line);
  streams_.erase(handle);
}

cudaError_t Runtime::enqueue(Stream& s, Work work) {
  if (s.capture != nullptr) {
    auto& nodes = s.capture->graph.nodes;
    nodes.push_back({std::move(work), s.frontier});
    s.frontier = {static_cast<u32>(nodes.size() - 1)};
    return cudaSuccess;
  }
  run(s.line, known_to(s), work, s.known);
  return cudaSuccess;
}

Clock Runtime::known_to(const Stream& s) {
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

void Runtime::launch(Executable& e, Stream& s) {
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

Capture* Runtime::strict_capture() {
  for (const auto& c : captures_)
    if (!c->is_relaxed && c->thread == std::this_thread::get_id()) return c.get();
  return nullptr;
}

std::unique_ptr<Capture> Runtime::end_capture(Capture* capture) {
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

bool Runtime::is_joined(const Capture& c, const Frontier& frontier) const {
  std::vector<bool> reached(c.graph.nodes.size());
  for (const u32 n : frontier) reached[n] = true;
  for (std::size_t i = c.graph.nodes.size(); i-- > 0;)
    if (reached[i])
      for (const u32 before : c.graph.nodes[i].after) reached[before] = true;
  return std::find(reached.begin(), reached.end(), false) == reached.end();
}

std::unique_ptr<Executable> Runtime::instantiate(const Graph& g) {
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

void Runtime::remove(const Executable& e) {
  for (const u32 line : std::set<u32>(e.lines.begin(), e.lines.end())) history.give_back(line);
}

Runtime::Runtime()
    : memory(device_named(environment("CUDP_PTX_DEVICE", "H100")).memory),
      interpreter(device_named(environment("CUDP_PTX_DEVICE", "H100")), memory,
                  std::strtoull(environment("CUDP_PTX_SEED", "1"), nullptr, 10)),
      device_(interpreter.device()),
      seed_(std::strtoull(environment("CUDP_PTX_SEED", "1"), nullptr, 10)) {
  default_.line = history.new_line();
  default_.is_blocking = true;
  if (on_exit([](int status, void*) { get().at_exit(status); }, nullptr) != 0) std::abort();
}

void Runtime::run(u32 line, const Clock& known, const Work& work, Clock& ended) {
  if (lost_ != cudaSuccess) return;
  KnownOperations order(history, known);
  const u32 first = interpreter.next_interval();
  order.operation_before = std::exchange(last_of_line_[line], first);
  ended = history.begin(line, known, first);
  const auto start = Clocks::now();
  try {
    work(first, order);
  } catch (const Fault& fault) {  // as on a device, it is told by what is called next
    report(fault);
  }
  seconds_ += std::chrono::duration<double>(Clocks::now() - start).count();
}

void Runtime::report(const Fault& fault) {
  ++faults_;
  lost_ = cudaErrorLaunchFailure;
  std::string_view what = fault.what();
  if (what.starts_with("ptx: ")) what.remove_prefix(5);
  std::fprintf(stderr, "ptx: FAULT: %.*s\n", static_cast<int>(what.size()), what.data());
}

void Runtime::at_exit(int status) {
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
        lines << (k.kernel != nullptr ? k.kernel->launches : 0) << ' ' << k.module->number() << ' '
              << readable(k.name) << '\n';
    std::ofstream(path, std::ios::app) << lines.str();
  }
  if (const char* folder = std::getenv("CUDP_PTX_SAVE"))
    for (const auto& m : modules_) m->save(folder);
  if (status == 0 && (faults_ > 0 || notes > 0)) {
    std::fflush(nullptr);
    std::_Exit(kPtxFault);
  }
}

}  // namespace cudp::ptx
