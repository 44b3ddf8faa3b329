// Launches: which blocks run when, what a barrier waits for, and what is said of a fault.
#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "tests/support/ptx/warp.hpp"

namespace cudp::ptx {

namespace {

constexpr u64 kMemoryOfBlocks = u64{512} << 20;  // bytes that blocks in flight may take here

std::string triple(u32 x, u32 y, u32 z) {
  return std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z);
}

/// The instruction that runs: its line in the module, its text, and its line in the source.
std::string place_of(const Warp& w) {
  const Kernel& k = *w.kernel;
  const Place& p = k.places[w.current];
  std::string text(k.module->text(p));
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::replace(text.begin(), text.end(), '\t', ' ');
  const std::string source = k.module->source(p);
  return "line " + std::to_string(p.line) + ": " + text +
         (source.empty() ? "" : "\n  source " + source);
}

}  // namespace

void fault(const Warp& w, u32 lane, const std::string& what) {
  const Block& b = *w.block;
  const u32 thread = w.index * kLanes + lane;
  throw Fault(
      "ptx: " + what + "\n  kernel " + w.kernel->name + "\n  block " +
      triple(b.id.x, b.id.y, b.id.z) + " thread " +
      triple(thread % b.block.x, thread / b.block.x % b.block.y, thread / b.block.x / b.block.y) +
      " (lane " + std::to_string(lane) + " of warp " + std::to_string(w.index) + ")\n  " +
      place_of(w));
}

void note(const Warp& w, const std::string& what) {
  ++(*w.block->notes)[what + "\n  kernel " + w.kernel->name + "\n  " + place_of(w)];
}

struct Interpreter::State {
  explicit State(u64 seed) : random(seed) {}

  Random random;
  std::vector<std::unique_ptr<Block>> blocks;  ///< kept from launch to launch
};

Interpreter::Interpreter(const Device& device, DeviceMemory& memory, u64 seed)
    : device_(device), memory_(memory), state_(std::make_unique<State>(seed)) {}

Interpreter::~Interpreter() = default;

u32 Interpreter::next_interval() {
  if (next_interval_ == ~0u) throw Fault("ptx: more intervals between barriers than 32 bits count");
  return next_interval_++;
}

void Interpreter::check(const Launch& launch) const {
  const Kernel& k = *launch.kernel;
  const auto refuse = [&](const std::string& what) {
    throw Fault("ptx: " + what + "\n  kernel " + k.name + "\n  grid " +
                triple(launch.grid.x, launch.grid.y, launch.grid.z) + " block " +
                triple(launch.block.x, launch.block.y, launch.block.z) + " dynamic shared memory " +
                std::to_string(launch.dynamic_shared));
  };
  const Dim &grid = launch.grid, &block = launch.block;
  if (grid.count() == 0 || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
    refuse("a grid that no device has");
  if (block.count() == 0 || block.count() > 1024 || block.z > 64)
    refuse("a block that no device has");
  if (grid.count() >= ~0u) refuse("more blocks than 32 bits count");
  if (block.count() > k.max_threads)
    refuse("a block of more threads than .maxntid, " + std::to_string(k.max_threads));
  if (launch.parameters.size() != k.parameter_bytes)
    refuse("parameters of " + std::to_string(launch.parameters.size()) + " bytes, not of " +
           std::to_string(k.parameter_bytes));
  constexpr u32 usual = 48 * 1024;
  const u32 shared = k.static_shared_bytes + launch.dynamic_shared;
  if (launch.dynamic_shared > k.max_dynamic_shared ||
      (shared > usual && k.max_dynamic_shared <= usual))
    refuse("more shared memory than the kernel is allowed");
  if (blocks_in_flight(device_, k, static_cast<u32>(block.count()), launch.dynamic_shared) == 0)
    refuse("a block that " + device_.name + " does not hold");
}

void Interpreter::begin(Block& b, const Launch& launch, u64 number) {
  const Kernel& k = *launch.kernel;
  b.grid = launch.grid;
  b.block = launch.block;
  b.number = static_cast<u32>(number);
  b.id = {static_cast<u32>(number % b.grid.x), static_cast<u32>(number / b.grid.x % b.grid.y),
          static_cast<u32>(number / b.grid.x / b.grid.y)};
  const u32 interval = next_interval();
  const u32 shared = k.shared_bytes + launch.dynamic_shared;
  b.shared.assign(shared, 0xff);
  b.shadow.reset(shared);
  for (std::size_t v = 0; v < k.shared.size(); ++v) {
    const u32 end = k.shared[v].at + k.shared[v].bytes;
    b.shadow.set_outside((end + 3) / 4 * 4, v + 1 < k.shared.size() ? k.shared[v + 1].at / 4 * 4
                                                                    : k.shared_bytes / 4 * 4);
  }

  const u32 threads = static_cast<u32>(b.block.count());
  b.warp_count = (threads + kLanes - 1) / kLanes;
  if (b.warps.size() < b.warp_count) b.warps.resize(b.warp_count);
  const u64 tracked = k.tracks ? 4 * u64{k.registers + k.predicates} : 0;
  const u64 bytes = (k.register_bytes + 4 * u64{k.predicates} + tracked + 63) / 64 * 64;
  u8* rows = b.rows.make(bytes * b.warp_count);
  for (u32 n = 0; n < b.warp_count; ++n, rows += bytes) {
    Warp& w = b.warps[n];
    w.block = &b;
    w.kernel = &k;
    w.index = n;
    w.registers = rows;
    w.predicates = reinterpret_cast<u32*>(rows + k.register_bytes);
    std::fill_n(w.predicates, k.predicates, 0u);
    w.written = w.predicates + k.predicates;
    w.predicates_written = w.written + k.registers;
    std::memset(w.written, 0, tracked);
    const u32 lanes = std::min(kLanes, threads - n * kLanes);
    w.live = lanes == kLanes ? ~0u : (1u << lanes) - 1;
    w.waiting = 0;
    w.current = 0;
    w.sync = 0;
    w.has_waited = 0;
    w.fenced = 0;
    w.counted = 0;
    w.interval = interval;
    w.ended.fill(interval - 1);
    w.at_barrier = false;
    w.pc.fill(0);
    for (auto& copies : w.copies) copies.clear();
    for (u32 lane = 0; lane < kLanes; ++lane) {
      const u32 t = n * kLanes + lane;
      const u32 values[kSpecialRegisters] = {t % b.block.x,
                                             t / b.block.x % b.block.y,
                                             t / b.block.x / b.block.y,
                                             b.block.x,
                                             b.block.y,
                                             b.block.z,
                                             b.id.x,
                                             b.id.y,
                                             b.id.z,
                                             b.grid.x,
                                             b.grid.y,
                                             b.grid.z,
                                             lane};
      for (u32 s = 0; s < kSpecialRegisters; ++s)
        if (k.special[s].is_register()) set<u32>(w.result(k.special[s]), lane, values[s]);
    }
  }
}

namespace {

void pass_barrier(Warp& w, u32 interval) {
  w.at_barrier = false;
  w.waiting = 0;
  w.sync = 0;
  w.fenced = 0;
  w.interval = interval;
  for (u32& pc : w.pc) ++pc;
}

/// The named barrier that a warp waits at, and for how many threads; 0 if it is none.
std::pair<u32, u32> named_barrier_of(const Warp& w) {
  const Instruction& i = w.kernel->code[w.current];
  if (w.live == 0 || !w.at_barrier || i.sources == 0) return {0, 0};
  const auto lane = static_cast<u32>(__builtin_ctz(w.live));
  const auto id = get<u32>(w.row(i.s[0]), lane), threads = get<u32>(w.row(i.s[1]), lane);
  for (u32 l = 0; l < kLanes; ++l)
    if ((w.live >> l & 1) != 0 && get<u32>(w.row(i.s[0]), l) != id)
      fault(w, l, "lanes of a warp wait at different named barriers");
  if (id == 0 || id > 15 || threads == 0 || threads % kLanes != 0)
    fault(w, lane, "a named barrier that no device has");
  return {id, threads};
}

/// Opens the named barriers at which all that they wait for are. What these warps did before is
/// ordered before what they do from now on, and nothing else is. False if there is none.
bool open_named_barriers(Block& b, const std::function<u32()>& next_interval) {
  bool any = false;
  if (!b.kernel->has_named_barriers) return any;
  std::array<std::vector<Warp*>, 16> at;
  std::array<u32, 16> wanted{};
  for (u32 n = 0; n < b.warp_count; ++n) {
    const auto [id, threads] = named_barrier_of(b.warps[n]);
    if (id == 0) continue;
    if (!at[id].empty() && wanted[id] != threads)
      fault(b.warps[n], 0, "a named barrier is waited at for different numbers of threads");
    wanted[id] = threads;
    at[id].push_back(&b.warps[n]);
  }
  for (u32 id = 1; id < 16; ++id) {
    if (at[id].empty() || at[id].size() * kLanes != wanted[id]) continue;
    std::array<u32, kMaxWarps> ended{};
    for (const Warp* w : at[id]) {
      for (u32 n = 0; n < b.warp_count; ++n) ended[n] = std::max(ended[n], w->ended[n]);
      ended[w->index] = std::max(ended[w->index], w->interval);
    }
    const u32 interval = next_interval();
    for (Warp* w : at[id]) {
      w->ended = ended;
      pass_barrier(*w, interval);
    }
    any = true;
  }
  return any;
}

/// Opens the barrier if all that have not ended are there.
bool open_barrier(Block& b, const std::function<u32()>& next_interval) {
  const Warp* first = nullptr;
  for (u32 n = 0; n < b.warp_count; ++n) {
    const Warp& w = b.warps[n];
    if (w.live == 0) continue;
    if (!w.at_barrier) return false;
    if (first == nullptr) first = &w;
    if (w.current != first->current)
      fault(w, static_cast<u32>(__builtin_ctz(w.live)),
            "warps of a block wait at different barriers; the other is at line " +
                std::to_string(w.kernel->places[first->current].line));
  }
  if (first != nullptr && first->kernel->code[first->current].sources > 0)
    fault(*first, 0, "a named barrier that too few threads reach");
  const u32 interval = next_interval();
  for (u32 n = 0; n < b.warp_count; ++n) {
    pass_barrier(b.warps[n], interval);
    b.warps[n].ended.fill(interval - 1);
  }
  return true;
}

/// Warps run in turns, in random order. False if all have ended.
bool run_turn(Block& b, Random& random, Totals& totals, const std::function<u32()>& next_interval) {
  std::array<u8, kLanes> order;
  std::iota(order.begin(), order.end(), u8{0});
  for (u32 rounds = 1 + random.below(4); rounds > 0; --rounds) {
    for (u32 n = b.warp_count; n > 1; --n) std::swap(order[n - 1], order[random.below(n)]);
    bool running = false, waits = true;
    for (u32 n = 0; n < b.warp_count; ++n) {
      Warp& w = b.warps[order[n]];
      if (w.live != 0 && !w.at_barrier) run_warp(w, random, 64 + random.below(4096), totals);
      running = running || w.live != 0;
      waits = waits && (w.live == 0 || w.at_barrier);
    }
    if (!running) return false;
    if (open_named_barriers(b, next_interval)) continue;
    if (waits) open_barrier(b, next_interval);
  }
  return true;
}

}  // namespace

void Interpreter::run(const Launch& launch, HappensBefore& order) {
  check(launch);
  Kernel& k = *launch.kernel;
  order.first = next_interval_;
  const u64 count = launch.grid.count();
  const u32 threads = static_cast<u32>(launch.block.count());
  const u64 held =
      u64{device_.multiprocessors} * blocks_in_flight(device_, k, threads, launch.dynamic_shared);
  const u64 bytes = (u64{k.shared_bytes} + launch.dynamic_shared) * 8 +
                    u64{(threads + kLanes - 1) / kLanes} * (k.register_bytes + 2048) + 1;
  const u64 in_flight = std::max(u64{1}, std::min({count, held, kMemoryOfBlocks / bytes}));

  // Blocks begin in the order first, first + step, ...
  Random& random = state_->random;
  u64 next = random.next() % count, begun = 0;
  u64 step = 1 + random.next() % count;
  while (std::gcd(step, count) != 1) step = step % count + 1;
  const auto begin_next = [&](Block& b) {
    begin(b, launch, next);
    next = (next + step) % count;
    ++begun;
  };

  std::vector<Block*> running;
  for (u64 n = 0; n < in_flight; ++n) {
    if (n == state_->blocks.size()) state_->blocks.push_back(std::make_unique<Block>());
    Block& b = *state_->blocks[n];
    b.kernel = &k;
    b.parameters = launch.parameters.data();
    b.memory = &memory_;
    b.order = &order;
    b.notes = &notes_;
    b.is_dependent = launch.is_dependent;
    begin_next(b);
    running.push_back(&b);
  }
  const std::function<u32()> interval = [this] { return next_interval(); };
  while (!running.empty()) {
    Block*& b = running[random.below(static_cast<u32>(running.size()))];
    if (run_turn(*b, random, totals_, interval)) continue;
    if (begun < count) {
      begin_next(*b);
    } else {
      b = running.back();
      running.pop_back();
    }
  }
  ++k.launches;
  ++totals_.launches;
  totals_.blocks += count;
}

}  // namespace cudp::ptx
