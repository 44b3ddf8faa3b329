// longjmp between stacks is what the fibers do; the fortified longjmp refuses it.
#undef _FORTIFY_SOURCE
#include <algorithm>
#include <bit>
#include <exception>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/simt/at_barrier.hpp"
#include "tests/support/simt/block.hpp"
#include "tests/support/simt/fiber.hpp"
#include "tests/support/simt/machine.hpp"
#include "tests/support/simt/simt_emulator.hpp"

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace simt {
namespace {

AtBarrier barrier_hook;

Machine the_machines[2];  // of a launch, and of the primary that runs beside it
Machine* the_machine = &the_machines[0];
Machine& machine() { return *the_machine; }

/// Returns whether two places in the source are the same. Mostly their file names are one text.
bool is_same_line(const Lane& a, const Lane& b) {
  return a.line == b.line && (a.file == b.file || std::string_view(a.file) == b.file);
}

/// Whether two lanes wait in one operation. What a whole warp does, it does at one line.
bool is_same_call(const Lane& a, const Lane& b) {
  if (a.mask != b.mask || a.op != b.op) return false;
  return a.op != WarpOp::together || (a.work == b.work && is_same_line(a, b));
}

}  // namespace

void Machine::lane_entry() { machine().lane_loop(); }

void Machine::lane_loop() {
  lane_->fiber.arrived();
  for (;;) {
    Lane& me = *lane_;
    Block& b = *me.warp->block;
    acquire(&launched_);
    acquire(&b.started);
    try {
      body_->call(body_->closure);
    } catch (...) {
      exception_ = std::current_exception();
      fail(b, "threw");
    }
    if (!me.copies.empty()) fail(b, "a thread ended with an asynchronous copy on its way");
    if (options_.is_dependent && !me.has_waited)
      fail(b, "thread " + number(me.thread) + " of a dependent launch ended without a wait");
    stop_at(me, "", 0);
    me.exited = true;
    ++b.exited;
    release(&b.finished);
    release(&finished_);
    leave();
  }
}

void Machine::leave() {
  Lane* const from = lane_;
  release(&abandoned_);  // the caller goes on from here, if this launch fails
  Lane* const to = next();
  lane_ = to;
  if (to != nullptr) {
    threadIdx = to->thread;
    blockIdx = to->warp->block->index;  // another block's, also where the lane stays the same
  }
  if (to == from) return;
  Fiber::switch_to(from->fiber, to != nullptr ? to->fiber : caller_);
}

Lane* Machine::next() {
  const HiddenFromTsan hidden;
  for (;;) {
    if (!error_.empty()) return nullptr;
    if (warp_ == nullptr) {
      if (runnable_.empty()) return nullptr;
      warp_ = runnable_[random(static_cast<unsigned>(runnable_.size()))];
    }
    Warp& w = *warp_;
    if (w.ready != 0) {
      const unsigned shift = random(kLanes);
      const unsigned rotated = (w.ready >> shift) | (w.ready << (kLanes - shift) % kLanes);
      const unsigned lane = (static_cast<unsigned>(__builtin_ctz(rotated)) + shift) % kLanes;
      return pool_[w.first + lane].get();
    }
    if (w.waiting != 0) {
      const bool goes_on = resolve(w);
      if (!goes_on && !awaits_primary(w)) fail(*w.block, explain_stuck(w));
      if (goes_on && random(patience_) == 0) warp_ = nullptr;  // or run ahead
      if (goes_on || !error_.empty()) continue;
    }
    runnable_.erase(std::find(runnable_.begin(), runnable_.end(), warp_));
    warp_ = nullptr;
    if (--w.block->running_warps == 0) finish_phase(*w.block);
  }
}

/// Completes every warp operation whose lanes have all arrived; false if there is none. No lane of
/// the warp is ready, so a lane that has not arrived never will before another group completes.
bool Machine::resolve(Warp& w) {
  bool any = false;
  for (unsigned l = 0; l < kLanes && error_.empty(); ++l) {
    if ((w.waiting >> l & 1) == 0) continue;
    const Lane& lane = *pool_[w.first + l];
    if ((lane.mask >> l & 1) == 0) {
      fail(*w.block, where(lane) + ": its warp operation's mask leaves it out");
      break;
    }
    if ((lane.mask & w.waiting) != lane.mask) continue;
    bool same = true;
    for (unsigned k = 0; k < kLanes; ++k)
      if (lane.mask >> k & 1) {
        const Lane& other = *pool_[w.first + k];
        same = same && is_same_call(lane, other);
      }
    if (same && finish_group(w, lane.mask)) any = true;
  }
  if (any) ++w.generation;
  return any;
}

bool Machine::finish_group(Warp& w, unsigned mask) {
  unsigned votes = 0;
  for (unsigned l = 0; l < kLanes; ++l)
    if (mask >> l & 1 && pool_[w.first + l]->value != 0) votes |= 1u << l;
  for (unsigned l = 0; l < kLanes; ++l) {
    if ((mask >> l & 1) == 0) continue;
    Lane& lane = *pool_[w.first + l];
    if (lane.op == WarpOp::ballot) lane.result = votes;
    if (lane.op != WarpOp::shuffle) continue;
    const auto source = static_cast<unsigned>(lane.source) % kLanes;
    if ((mask >> source & 1) == 0) {
      fail(*w.block, where(lane) + ": it shuffles from lane " + std::to_string(source) +
                         ", which its mask leaves out");
      return true;
    }
    lane.result = pool_[w.first + source]->value;
  }
  if (pool_[w.first + static_cast<unsigned>(__builtin_ctz(mask))]->op == WarpOp::together)
    work_together(w);
  w.waiting &= ~mask;
  w.ready |= mask;
  return true;
}

void Machine::work_together(Warp& w) {
  void* lanes[kLanes];
  for (unsigned l = 0; l < kLanes; ++l)
    lanes[l] = std::bit_cast<void*>(static_cast<std::uintptr_t>(pool_[w.first + l]->value));
  const Lane& first = *pool_[w.first];
  if (const char* const wrong = first.work(lanes)) fail(*w.block, where(first) + ": " + wrong);
}

std::string Machine::explain_stuck(Warp& w) {
  const Lane& lane = *pool_[w.first + static_cast<unsigned>(__builtin_ctz(w.waiting))];
  std::string text = where(lane) + " in a warp operation, ";
  for (unsigned k = 0; k < kLanes; ++k) {
    if ((lane.mask >> k & 1) == 0) continue;
    if ((w.members >> k & 1) == 0)
      return text + "whose mask names lane " + std::to_string(k) + ", which does not exist";
    const Lane& other = *pool_[w.first + k];
    if ((w.waiting >> k & 1) == 0)
      return text + "whose mask names a lane elsewhere: " + where(other);
    if (!is_same_call(lane, other))
      return text + "but with another mask or operation " + where(other);
  }
  return text + "and never leaves it";
}

void* Machine::make_static_shared(Block& b, const void* key, std::size_t bytes, std::size_t align) {
  const HiddenFromTsan hidden;
  const auto [at, is_new] = b.fixed.try_emplace(key, bytes, align);
  if (is_new) {
    std::size_t total = b.dynamic->bytes();
    for (const auto& [k, array] : b.fixed) total += array.bytes();
    if (total > options_.max_shared)
      fail(b, "shared memory of " + std::to_string(total) + " bytes, limit " +
                  std::to_string(options_.max_shared));
  }
  return at->second.data();
}

/// All threads of a named barrier have come.
void Machine::open(Block& b, int id) {
  const HiddenFromTsan hidden;
  b.named[id].arrived = 0;
  ++b.named[id].generation;
  for (Warp& w : b.warps) {
    for (unsigned l = 0; l < kLanes; ++l) {
      if ((w.members >> l & 1) == 0 || pool_[w.first + l]->named != id) continue;
      pool_[w.first + l]->named = 0;
      w.ready |= 1u << l;
    }
    if (w.ready == 0 || std::find(runnable_.begin(), runnable_.end(), &w) != runnable_.end())
      continue;
    runnable_.push_back(&w);
    ++b.running_warps;
  }
}

/// Called when no warp of the block can run. If the block is done, starts the next one; if all its
/// threads are at one barrier, lets them pass; otherwise fails.
void Machine::finish_phase(Block& b) {
  if (b.exited == b.size) {
    bool overrun = b.dynamic->overrun();
    for (const auto& [key, array] : b.fixed) overrun = overrun || array.overrun();
    if (overrun) fail(b, "wrote past the end of a shared array");
    acquire(&b.finished);
    start_next(b);
    return;
  }
  const auto lanes = pool_.begin() + b.first;
  if (std::any_of(lanes, lanes + b.size, [](const auto& l) { return l->awaits_primary; })) return;
  const auto named =
      std::find_if(lanes, lanes + b.size, [](const auto& l) { return l->named != 0; });
  if (named != lanes + b.size) {
    fail(b, where(**named) + ", a named barrier that too few threads reach");
    return;
  }
  const Lane& at =
      **std::find_if(lanes, lanes + b.size, [](const auto& l) { return l->at_barrier; });
  for (auto it = lanes; it != lanes + b.size; ++it) {
    const Lane& l = **it;
    if (!l.at_barrier || !is_same_line(l, at)) {
      fail(b, "__syncthreads at " + std::string(at.file) + ":" + std::to_string(at.line) +
                  " is not reached by every thread: " + where(l));
      return;
    }
  }
  for (auto it = lanes; it != lanes + b.size; ++it) (*it)->at_barrier = false;
  if (barrier_hook) {
    SharedMemory shared{static_cast<unsigned char*>(b.dynamic->data()), {}};
    for (auto& [key, array] : b.fixed) shared.fixed.emplace_back(array.data(), array.bytes());
    barrier_hook(b.barriers, shared);
  }
  ++b.barriers;
  b.arrived = 0;
  ++b.generation;
  set_ready(b);
}

void Machine::set_ready(Block& b) {
  patience_ = 2u << 2 * random(4);  // warps side by side, or one far ahead of the others
  for (Warp& w : b.warps) {
    w.ready = w.members;
    runnable_.push_back(&w);
  }
  b.running_warps = static_cast<unsigned>(b.warps.size());
}

void Machine::start_next(Block& b) {
  if (order_.empty()) return;
  const unsigned n = order_.back();
  order_.pop_back();
  b.index = dim3(n % gridDim.x, n / gridDim.x % gridDim.y, n / gridDim.x / gridDim.y);
  b.exited = b.barriers = 0;
  for (unsigned i = 0; i < b.size; ++i)
    pool_[b.first + i]->exited = pool_[b.first + i]->has_waited = false;
  for (NamedBarrier& n : b.named) n = {};
  b.dynamic->poison();
  for (auto& [key, array] : b.fixed) array.poison();
  release(&b.started);
  set_ready(b);
}

/// Returns whether a lane of the warp waits for the primary.
bool Machine::awaits_primary(const Warp& w) const {
  for (unsigned l = 0; l < kLanes; ++l)
    if ((w.members >> l & 1) != 0 && pool_[w.first + l]->awaits_primary) return true;
  return false;
}

/// Runs the primary on the other machine, and lets the lanes that wait for it go on.
void Machine::run_primary() {
  const std::function<void()> primary = std::exchange(options_.primary, nullptr);
  const dim3 grid = gridDim, block = blockDim;
  the_machine = &the_machines[1];
  try {
    primary();
  } catch (const std::exception& e) {
    error_ = e.what();
    exception_ = std::current_exception();
  }
  the_machine = &the_machines[0];
  gridDim = grid;
  blockDim = block;
  release(&launched_);
}

void Machine::check_shape(std::size_t smem) const {
  const dim3 g = gridDim, b = blockDim;
  const std::string name = std::string("simt: ") + options_.name + ": ";
  if (g.x == 0 || g.y == 0 || g.z == 0 || g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535)
    throw std::runtime_error(name + "grid " + number(g) + " is not allowed");
  if (b.x == 0 || b.y == 0 || b.z == 0 || b.z > 64 || std::uint64_t{b.x} * b.y * b.z > 1024)
    throw std::runtime_error(name + "block " + number(b) + " is not allowed");
  if (std::uint64_t{g.x} * g.y * g.z > 1u << 22)
    throw std::runtime_error(name + "grid " + number(g) + " is too large to emulate");
  if (smem > options_.max_shared)
    throw std::runtime_error(name + "shared memory of " + std::to_string(smem) + " bytes, limit " +
                             std::to_string(options_.max_shared));
}

void Machine::run(const Body& body, dim3 grid, dim3 block, std::size_t smem,
                  const Options& options) {
  const HiddenFromTsan hidden;
  options_ = options;
  body_ = &body;
  gridDim = grid;
  blockDim = block;
  check_shape(smem);
  state_ = options.seed * 2654435761u | 1;

  order_.resize(std::size_t{grid.x} * grid.y * grid.z);
  std::iota(order_.begin(), order_.end(), 0u);
  std::shuffle(order_.begin(), order_.end(), std::mt19937(options.seed));

  const std::size_t threads = std::size_t{block.x} * block.y * block.z;
  const auto in_flight =
      std::min<std::size_t>(order_.size(), static_cast<std::size_t>(options.blocks_in_flight));
  while (pool_.size() < in_flight * threads)
    pool_.push_back(std::make_unique<Lane>(&Machine::lane_entry));
  release(&launched_);
  std::vector<Block> blocks(in_flight);
  runnable_.clear();
  for (unsigned i = 0; i < in_flight; ++i) {
    Block& b = blocks[i];
    b.first = i * threads;
    b.size = threads;
    b.dynamic = std::make_unique<SharedArray>(smem, 16);
    b.warps.resize((threads + kLanes - 1) / kLanes);
    for (unsigned t = 0; t < threads; ++t) {
      Warp& w = b.warps[t / kLanes];
      Lane& l = *pool_[b.first + t];
      if (t % kLanes == 0) w.first = b.first + t;
      w.block = &b;
      w.members |= 1u << t % kLanes;
      l.warp = &w;
      l.number = t;
      l.thread = dim3(t % block.x, t / block.x % block.y, t / block.x / block.y);
    }
    start_next(b);
  }

  const auto go_on = [this] {
    warp_ = nullptr;
    lane_ = next();
    if (lane_ == nullptr) return;
    threadIdx = lane_->thread;
    blockIdx = lane_->warp->block->index;
    Fiber::switch_to(caller_, lane_->fiber);
  };
  go_on();
  if (error_.empty() && options_.primary) {
    run_primary();
    for (Block& b : blocks)
      for (Warp& w : b.warps) {
        for (unsigned l = 0; l < kLanes; ++l) {
          if ((w.members >> l & 1) == 0 || !pool_[w.first + l]->awaits_primary) continue;
          pool_[w.first + l]->awaits_primary = false;
          w.ready |= 1u << l;
        }
        if (w.ready == 0) continue;
        runnable_.push_back(&w);
        ++b.running_warps;
      }
    go_on();
  }
  acquire(&finished_);

  if (error_.empty()) return;
  acquire(&abandoned_);
  pool_.clear();  // their stacks stopped in the middle
  const std::string error = std::exchange(error_, "");
  if (exception_) std::rethrow_exception(std::exchange(exception_, nullptr));
  throw std::runtime_error(error);
}

void run(const Body& body, dim3 grid, dim3 block, std::size_t smem_bytes, const Options& options) {
  machine().run(body, grid, block, smem_bytes, options);
}
void set_at_barrier(AtBarrier call) { barrier_hook = std::move(call); }
void set_first_byte(unsigned char value) { first_byte = value; }
void barrier(const char* file, int line) { machine().barrier(file, line); }
void named_barrier(int id, int threads, const char* file, int line) {
  machine().named_barrier(id, static_cast<unsigned>(threads), file, line);
}
std::uint64_t warp_op(WarpOp op, unsigned mask, std::uint64_t value, int source, const char* file,
                      int line) {
  return machine().warp_op(op, mask, value, source, file, line);
}
void together(WholeWarp work, void* mine, const char* file, int line) {
  machine().together(work, mine, file, line);
}
unsigned lane_id() { return machine().lane_id(); }
void maybe_yield() { machine().maybe_yield(); }
void fence() { machine().fence(); }
void copy_async(void* to, const void* from, bool inside, const char* file, int line) {
  machine().copy_async(to, from, inside, file, line);
}
void wait_for_copies() { machine().wait_for_copies(); }
void check_shared(const void* row, std::size_t bytes, const char* file, int line) {
  machine().check_shared(row, bytes, file, line);
}
void wait_for_primary(const char* file, int line) { machine().wait_for_primary(file, line); }
bool races_end_the_program() { return __tsan_acquire != nullptr; }
bool overruns_end_the_program() { return __asan_poison_memory_region != nullptr; }
void* dynamic_shared() { return machine().dynamic_shared(); }
void* static_shared_bytes(const void* key, std::size_t bytes, std::size_t align) {
  return machine().static_shared(key, bytes, align);
}

}  // namespace simt
