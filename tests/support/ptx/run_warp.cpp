// How the lanes of a warp run: each has its own program counter, as on devices since Volta. Lanes
// that stand at one instruction run it together. Mostly those run that are furthest behind, so that
// the others are met again; sometimes any others do, for a while.
#include <algorithm>

#include "tests/support/ptx/warp.hpp"

namespace cudp::ptx {

namespace {

u32 first_lane(u32 lanes) { return static_cast<u32>(__builtin_ctz(lanes)); }

void put(Warp& w, u32 lanes, u32 pc) {
  if (lanes == ~0u) {
    w.pc.fill(pc);
  } else {
    for (; lanes != 0; lanes &= lanes - 1) w.pc[first_lane(lanes)] = pc;
  }
}

u32 lanes_at(const Warp& w, u32 lanes, u32 pc) {
  u32 there = 0;
  for (; lanes != 0; lanes &= lanes - 1)
    if (w.pc[first_lane(lanes)] == pc) there |= lanes & (0u - lanes);
  return there;
}

u32 lowest(const Warp& w, u32 lanes) {
  u32 pc = ~0u;
  for (; lanes != 0; lanes &= lanes - 1) pc = std::min(pc, w.pc[first_lane(lanes)]);
  return pc;
}

void check_written(const Warp& w, const Instruction& i, u32 lanes) {
  const auto check = [&](u32 written) {
    if ((lanes & ~written) != 0)
      fault(w, first_lane(lanes & ~written), "a register is read that nobody has written");
  };
  const auto check_operand = [&](const Operand& o) {
    if (o.is_register() && w.kernel->tracked_registers[o.id]) check(w.written[o.id]);
    if (o.is_predicate() && w.kernel->tracked_predicates[o.id]) check(w.predicates_written[o.id]);
  };
  for (u32 k = 0; k < i.sources; ++k) check_operand(i.s[k]);
  check_operand(i.mask);
}

void mark_written(Warp& w, const Instruction& i, u32 lanes) {
  for (u32 k = 0; k < i.results; ++k)
    if (w.kernel->tracked_registers[i.d[k].id]) w.written[i.d[k].id] |= lanes;
  if (i.predicate.is_predicate() && w.kernel->tracked_predicates[i.predicate.id])
    w.predicates_written[i.predicate.id] |= lanes;
}

[[gnu::always_inline]] inline void execute(Warp& w, const Instruction& i, u32 lanes) {
  if (i.tracked) [[unlikely]] {
    check_written(w, i, lanes);
    i.run(w, i, lanes);
    mark_written(w, i, lanes);
  } else {
    i.run(w, i, lanes);
  }
}

/// Lanes that run together, up to where others may join them or their quantum of instructions is
/// used up.
class Group {
 public:
  Group(Warp& w, Random& random, u32 ready) : w_(w) {
    pc_ = lowest(w, ready);
    lanes_ = lanes_at(w, ready, pc_);
    if (lanes_ == ready) return;
    if (random.below(4) == 0) {
      u32 left = ready;
      for (u32 n = random.below(static_cast<u32>(__builtin_popcount(ready))); n > 0; --n)
        left &= left - 1;
      pc_ = w.pc[first_lane(left)];
      lanes_ = lanes_at(w, ready, pc_);
      quantum_ = 1 + random.below(24);
    } else {
      others_at_ = lowest(w, ready & ~lanes_);
    }
  }

  u64 run(u64 instructions) {
    const Instruction* const code = w_.kernel->code.data();
    const u64 most = std::min(instructions, quantum_);
    u64 done = 0;
    for (;;) {
      if (done == most || pc_ >= others_at_) break;
      const Instruction& i = code[pc_];
      w_.current = pc_;
      ++done;
      u32 lanes = lanes_;
      if (i.guard >= 0) {
        if (i.tracked) [[unlikely]]
          check_guard(i);
        const u32 p = w_.predicates[i.guard];
        lanes &= i.guard_negated ? ~p : p;
      }
      if (i.form == Form::plain) {
        if (lanes != 0) execute(w_, i, lanes);
        ++pc_;
      } else if (!run_control(i, lanes)) {
        return done;
      }
    }
    put(w_, lanes_, pc_);
    return done;
  }
  u32 lanes() const { return lanes_; }

 private:
  void check_guard(const Instruction& i) const {
    const auto p = static_cast<u32>(i.guard);
    if (!w_.kernel->tracked_predicates[p]) return;
    if (const u32 wrong = lanes_ & ~w_.predicates_written[p]; wrong != 0)
      fault(w_, first_lane(wrong), "a predicate is read that nobody has written");
  }

  /// False if the group has parted; each lane's place is then written.
  bool run_control(const Instruction& i, u32 lanes) {
    const u32 rest = lanes_ & ~lanes;
    if (i.form == Form::branch) {
      if (lanes == lanes_) {
        pc_ = i.target;
        return true;
      }
      if (i.uniform && lanes != 0) fault(w_, first_lane(lanes), "bra.uni by a part of a warp");
      ++pc_;
      if (lanes == 0) return true;
      put(w_, rest, pc_);
      put(w_, lanes, i.target);
      return false;
    }
    if (lanes == 0) {
      ++pc_;
      return true;
    }
    if (i.form == Form::exit) {
      if (const u32 early = lanes & ~w_.has_waited; w_.block->is_dependent && early != 0)
        fault(w_, first_lane(early), "a thread of a dependent launch ends without a wait");
      for (u32 left = lanes; left != 0; left &= left - 1)
        if (!w_.copies[first_lane(left)].empty())
          fault(w_, first_lane(left), "a thread ends while copies of its own are on their way");
      w_.live &= ~lanes;
      put(w_, rest, pc_ + 1);
      return false;
    }
    if (i.form == Form::block_barrier) {
      if (rest != 0) fault(w_, first_lane(rest), "bar.sync by a part of a warp");
      put(w_, lanes, pc_);
      w_.waiting |= lanes;
      return false;
    }
    return run_together(i, lanes, rest);
  }

  /// A warp operation: those that it names must all come.
  bool run_together(const Instruction& i, u32 lanes, u32 rest) {
    if (i.tracked) [[unlikely]]
      check_written(w_, i, lanes);
    const u8* const row = w_.row(i.mask);
    const u32 caller = first_lane(lanes), mask = get<u32>(row, caller);
    const auto with_same_mask = [&](u32 of) {
      if (i.mask.is_constant()) return of;
      u32 same = 0;
      for (; of != 0; of &= of - 1)
        if (get<u32>(row, first_lane(of)) == mask) same |= of & (0u - of);
      return same;
    };
    const u32 callers = with_same_mask(lanes);
    if ((callers & ~mask) != 0)
      fault(w_, first_lane(callers & ~mask), "a warp operation's mask leaves out the caller");
    if ((mask & ~w_.live) != 0)
      fault(w_, caller,
            "a warp operation names lane " + std::to_string(first_lane(mask & ~w_.live)) +
                ", which has ended or never was");
    const u32 here = callers | with_same_mask(lanes_at(w_, w_.waiting, pc_));
    if ((mask & ~here) != 0) {
      put(w_, lanes, pc_);
      put(w_, rest, pc_ + 1);
      w_.waiting |= callers;
      return false;
    }
    w_.waiting &= ~mask;
    execute(w_, i, mask);
    if (mask == lanes_) {
      ++pc_;
      return true;
    }
    put(w_, mask | rest, pc_ + 1);
    put(w_, lanes & ~callers, pc_);
    return false;
  }

  Warp& w_;
  u32 pc_ = 0, lanes_ = 0;
  u32 others_at_ = ~0u;
  u64 quantum_ = ~u64{0};
};

/// All lanes wait: at one barrier, or for ever.
void arrive(Warp& w) {
  const u32 pc = w.pc[first_lane(w.live)];
  w.current = pc;
  const bool at_barrier = w.kernel->code[pc].form == Form::block_barrier;
  if (const u32 elsewhere = w.live & ~lanes_at(w, w.live, pc); elsewhere != 0) {
    const u32 other = w.pc[first_lane(elsewhere)];
    fault(w, first_lane(w.live),
          "lanes wait for others that never come; lane " + std::to_string(first_lane(elsewhere)) +
              " waits at line " + std::to_string(w.kernel->places[other].line));
  }
  if (!at_barrier) fault(w, first_lane(w.live), "lanes wait for others that never come");
  w.at_barrier = true;
}

}  // namespace

void run_warp(Warp& w, Random& random, u64 instructions, Totals& totals) {
  while (w.live != 0 && instructions > 0) {
    const u32 ready = w.live & ~w.waiting;
    if (ready == 0) return arrive(w);
    Group group(w, random, ready);
    const u64 done = group.run(instructions);
    totals.warp_instructions += done;
    totals.thread_instructions += done * static_cast<u64>(__builtin_popcount(group.lanes()));
    instructions -= done;
  }
}

}  // namespace cudp::ptx
