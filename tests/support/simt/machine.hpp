#pragma once
// The state of the emulator while it runs a launch, and what a lane that runs asks of it.
// emulator.cpp has the schedule: which lane runs next, and what ends a barrier or an operation of a
// warp.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/simt/block.hpp"
#include "tests/support/simt/fiber.hpp"
#include "tests/support/simt/simt_emulator.hpp"

namespace simt {

inline std::string number(const dim3& d) {
  std::string s(1, '(');  // GCC 12 sees an overlap in "(" + std::to_string(...)
  return s.append(std::to_string(d.x))
             .append(",")
             .append(std::to_string(d.y))
             .append(",")
             .append(std::to_string(d.z)) +
         ")";
}

/// All that is in flight.
class Machine {
 public:
  void run(const Body& body, dim3 grid, dim3 block, std::size_t smem, const Options& options);

  void barrier(const char* file, int line) {
    Lane& me = *lane_;
    Block& b = *me.warp->block;
    stop_at(me, file, line);
    me.at_barrier = true;
    ++b.arrived;
    char* sync = &b.sync[b.generation & 1];
    release(sync);
    leave();
    acquire(sync);
  }

  void named_barrier(int id, unsigned threads, const char* file, int line) {
    Lane& me = *lane_;
    Block& b = *me.warp->block;
    stop_at(me, file, line);
    me.named = id;
    if (id < 1 || id >= kNamedBarriers || threads % kLanes != 0) {
      fail(b, where(me) + ": no named barrier " + std::to_string(id) + " of " +
                  std::to_string(threads) + " threads");
      leave();
    }
    NamedBarrier& n = b.named[id];
    if (n.arrived++ == 0) n.threads = threads;
    if (n.threads != threads) fail(b, where(me) + ": it waits for another number of threads");
    char* sync = &n.sync[n.generation & 1];
    release(sync);
    if (n.arrived == n.threads) open(b, id);
    leave();
    acquire(sync);
  }

  std::uint64_t warp_op(WarpOp op, unsigned mask, std::uint64_t value, int source, const char* file,
                        int line) {
    Lane& me = *lane_;
    stop_at(me, file, line);
    me.warp->waiting |= 1u << (me.number % kLanes);
    me.op = op;
    me.mask = mask;
    me.value = value;
    me.source = source;
    char* sync = &me.warp->sync[me.warp->generation & 1];
    if (op == WarpOp::sync) release(sync);
    leave();
    if (op == WarpOp::sync) acquire(sync);
    return me.result;
  }

  void together(WholeWarp work, void* mine, const char* file, int line) {
    lane_->work = work;
    warp_op(WarpOp::together, ~0u, reinterpret_cast<std::uintptr_t>(mine), -1, file, line);
  }

  unsigned lane_id() const { return lane_->number % kLanes; }

  void maybe_yield() {
    if (random(4) != 0) return;
    warp_ = nullptr;
    leave();
  }

  void fence() {
    acquire(&fence_);
    release(&fence_);
  }

  void copy_async(void* to, const void* from, bool inside, const char* file, int line) {
    const auto address = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
    if ((address(to) | address(from)) % kCopyBytes != 0) {
      fail(*lane_->warp->block, std::string(file) + ":" + std::to_string(line) +
                                    ": an asynchronous copy of 16 bytes that are not aligned");
      leave();
    }
    auto* const bytes = static_cast<unsigned char*>(to);
    std::fill_n(bytes, kCopyBytes, static_cast<unsigned char>(0xff));
    lane_->copies.push_back({bytes, inside ? static_cast<const unsigned char*>(from) : nullptr});
  }
  void wait_for_copies() {
    for (const Copy& c : lane_->copies) {
      if (c.from != nullptr)
        std::copy_n(c.from, kCopyBytes, c.to);
      else
        std::fill_n(c.to, kCopyBytes, static_cast<unsigned char>(0));
    }
    lane_->copies.clear();
  }

  void wait_for_primary(const char* file, int line) {
    Lane& me = *lane_;
    me.has_waited = true;
    if (!options_.primary) return;
    stop_at(me, file, line);
    me.awaits_primary = true;
    leave();
    acquire(&launched_);
  }

  void check_shared(const void* row, std::size_t bytes, const char* file, int line) {
    const HiddenFromTsan hidden;
    Block& b = *lane_->warp->block;
    const auto address = reinterpret_cast<std::uintptr_t>(row);
    const auto is_in = [&](SharedArray& array) {
      const auto begin = reinterpret_cast<std::uintptr_t>(array.data());
      return address >= begin && address - begin + bytes <= array.bytes();
    };
    const bool shared = is_in(*b.dynamic) || std::any_of(b.fixed.begin(), b.fixed.end(),
                                                         [&](auto& f) { return is_in(f.second); });
    if (shared && address % bytes == 0) return;
    fail(b, std::string(file) + ":" + std::to_string(line) + ": thread " + number(lane_->thread) +
                ": a row of " + std::to_string(bytes) + " bytes that is not " +
                (shared ? "aligned" : "in shared memory"));
    leave();
  }

  bool races_end_the_program() { return __tsan_acquire != nullptr; }
  bool overruns_end_the_program() { return __asan_poison_memory_region != nullptr; }
  void* dynamic_shared() { return lane_->warp->block->dynamic->data(); }

  void* static_shared(const void* key, std::size_t bytes, std::size_t align) {
    Block& b = *lane_->warp->block;
    void* const data = make_static_shared(b, key, bytes, align);
    if (!error_.empty()) leave();
    return data;
  }

 private:
  static void lane_entry();
  void lane_loop();
  void leave();  // switches to whoever is next
  Lane* next();
  bool resolve(Warp& w);
  bool finish_group(Warp& w, unsigned mask);
  void work_together(Warp& w);
  std::string explain_stuck(Warp& w);
  void* make_static_shared(Block& b, const void* key, std::size_t bytes, std::size_t align);
  void finish_phase(Block& b);
  void open(Block& b, int id);
  void start_next(Block& b);
  void set_ready(Block& b);
  void check_shape(std::size_t smem) const;
  bool awaits_primary(const Warp& w) const;
  void run_primary();

  void stop_at(Lane& l, const char* file, int line) {
    l.warp->ready &= ~(1u << (l.number % kLanes));
    l.file = file;
    l.line = line;
  }
  std::string where(const Lane& l) const {
    return "thread " + number(l.thread) +
           (l.exited ? " has exited"
                     : std::string(l.at_barrier ? " is at __syncthreads, " : " is at ") + l.file +
                           ":" + std::to_string(l.line));
  }
  void fail(const Block& b, const std::string& what) {
    if (error_.empty())
      error_ = std::string("simt: ") + options_.name + ", block " + number(b.index) + ": " + what;
  }
  unsigned random(unsigned n) {  // xorshift: the schedule needs no better
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    return static_cast<unsigned>((std::uint64_t{state_} * n) >> 32);
  }

  Options options_;
  const Body* body_ = nullptr;
  std::uint32_t state_ = 1;
  std::vector<std::unique_ptr<Lane>> pool_;
  std::vector<unsigned> order_;  // block numbers still to start, from the back
  std::vector<Warp*> runnable_;
  Warp* warp_ = nullptr;   // the one that runs on
  unsigned patience_ = 2;  // warp operations that it runs on for, on average
  Lane* lane_ = nullptr;   // the one that runs now
  Fiber caller_;
  std::string error_;
  std::exception_ptr exception_;
  char launched_ = 0, finished_ = 0, fence_ = 0, abandoned_ = 0;  // addresses that TSan orders by
};

}  // namespace simt
