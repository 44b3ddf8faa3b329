// Which registers are needed where. PTX has as many registers as it likes; a warp's rows of all of
// them would not stay in a processor's cache. What some path reads before it writes it is watched
// while the kernel runs; all other reads are proved to have been written.
#include <algorithm>
#include <set>

#include "tests/support/ptx/text.hpp"

namespace cudp::ptx {

namespace {

class Set {
 public:
  explicit Set(u32 size) : bits_((size + 63) / 64) {}
  bool has(u32 i) const { return (bits_[i / 64] >> (i % 64) & 1) != 0; }
  void insert(u32 i) { bits_[i / 64] |= u64{1} << (i % 64); }
  void erase(u32 i) { bits_[i / 64] &= ~(u64{1} << (i % 64)); }
  /// True if there are new ones.
  bool insert(const Set& other) {
    bool grew = false;
    for (std::size_t k = 0; k < bits_.size(); ++k) {
      grew = grew || (other.bits_[k] & ~bits_[k]) != 0;
      bits_[k] |= other.bits_[k];
    }
    return grew;
  }
  template <class F>
  void each(F&& f) const {
    for (std::size_t k = 0; k < bits_.size(); ++k)
      for (u64 left = bits_[k]; left != 0; left &= left - 1)
        f(static_cast<u32>(64 * k) + static_cast<u32>(__builtin_ctzll(left)));
  }

 private:
  std::vector<u64> bits_;
};

/// From its first instruction to before its end; control leaves only there.
struct Stretch {
  u32 begin = 0, end = 0;
  std::vector<u32> next;
};

/// The instructions between which a register's row is its own, both included.
struct Interval {
  u32 first = ~0u, last = 0;
  void extend(u32 at) {
    first = std::min(first, at);
    last = std::max(last, at);
  }
};

class Liveness {
 public:
  explicit Liveness(const Kernel& kernel)
      : kernel_(kernel), size_(kernel.registers + kernel.predicates), intervals_(size_) {
    find_stretches();
    before_.assign(stretches_.size(), Set(size_));
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t s = stretches_.size(); s-- > 0;)
        if (before_[s].insert(needed_before(s, nullptr))) changed = true;
    }
    for (std::size_t s = 0; s < stretches_.size(); ++s) {
      needed_before(s, &intervals_);
      before_[s].each([&](u32 r) { intervals_[r].extend(stretches_[s].begin); });
    }
  }

  /// Registers, then predicates.
  const std::vector<Interval>& intervals() const { return intervals_; }
  bool needed_at_begin(u32 r) const { return before_[0].has(r); }

 private:
  void find_stretches() {
    const u32 n = static_cast<u32>(kernel_.code.size());
    std::set<u32> begins{0};
    for (u32 at = 0; at < n; ++at) {
      const Instruction& i = kernel_.code[at];
      if (i.form != Form::branch && i.form != Form::exit) continue;
      if (i.form == Form::branch) begins.insert(i.target);
      if (at + 1 < n) begins.insert(at + 1);
    }
    std::map<u32, u32> number;
    for (const u32 begin : begins) {
      number[begin] = static_cast<u32>(stretches_.size());
      if (!stretches_.empty()) stretches_.back().end = begin;
      stretches_.push_back({begin, n, {}});
    }
    for (Stretch& s : stretches_) {
      const Instruction& last = kernel_.code[s.end - 1];
      if (last.form == Form::branch) s.next.push_back(number.at(last.target));
      const bool always_leaves =
          last.guard < 0 && (last.form == Form::branch || last.form == Form::exit);
      if (!always_leaves && s.end < n) s.next.push_back(number.at(s.end));
    }
  }

  Set needed_before(std::size_t s, std::vector<Interval>* intervals) const {
    const Stretch& stretch = stretches_[s];
    Set needed(size_);
    for (const u32 next : stretch.next) needed.insert(before_[next]);
    if (intervals != nullptr) needed.each([&](u32 r) { (*intervals)[r].extend(stretch.end - 1); });
    for (u32 at = stretch.end; at-- > stretch.begin;) {
      const Instruction& i = kernel_.code[at];
      const auto record_use = [&](const Operand& o, bool reads) {
        if (!o.is_register() && !o.is_predicate()) return;
        const u32 r = o.is_register() ? o.id : kernel_.registers + o.id;
        if (intervals != nullptr) (*intervals)[r].extend(at);
        if (reads) {
          needed.insert(r);
        } else if (i.guard < 0) {  // with a guard the old value may stay
          needed.erase(r);
        }
      };
      for (u32 k = 0; k < i.results; ++k) record_use(i.d[k], false);
      record_use(i.predicate, false);
      for (u32 k = 0; k < i.sources; ++k) record_use(i.s[k], true);
      record_use(i.mask, true);
      if (i.guard >= 0) {
        Operand guard;
        guard.kind = Operand::Kind::predicate;
        guard.id = static_cast<u16>(i.guard);
        record_use(guard, true);
      }
    }
    return needed;
  }

  const Kernel& kernel_;
  u32 size_;
  std::vector<Stretch> stretches_;
  std::vector<Set> before_;
  std::vector<Interval> intervals_;
};

/// The place of each register's row. `wide`: has 8 bytes a lane.
std::vector<u32> places(const Kernel& kernel, const std::vector<Interval>& intervals,
                        const std::vector<bool>& wide, u32& bytes) {
  std::vector<u32> order;
  for (u32 r = 0; r < kernel.registers; ++r)
    if (intervals[r].first != ~0u) order.push_back(r);
  std::sort(order.begin(), order.end(), [&](u32 a, u32 b) {
    return std::pair(intervals[a].first, a) < std::pair(intervals[b].first, b);
  });
  std::vector<u32> at(kernel.registers);
  std::array<std::vector<u32>, 2> free;
  std::set<std::pair<u32, u32>> taken;  // last instruction, register
  bytes = 0;
  for (const u32 r : order) {
    while (!taken.empty() && taken.begin()->first < intervals[r].first) {
      const u32 done = taken.begin()->second;
      free[wide[done]].push_back(at[done]);
      taken.erase(taken.begin());
    }
    std::vector<u32>& rows = free[wide[r]];
    if (rows.empty()) {
      rows.push_back(bytes);
      bytes += kLanes * (wide[r] ? 8 : 4);
    }
    at[r] = rows.back();
    rows.pop_back();
    taken.insert({intervals[r].last, r});
  }
  return at;
}

template <class F>
void each_register(Kernel& kernel, F&& f) {
  for (Instruction& i : kernel.code) {
    for (Operand& o : i.d) f(o);
    for (Operand& o : i.s) f(o);
    f(i.mask);
  }
  for (Operand& o : kernel.special) f(o);
}

}  // namespace

void assign_rows(Kernel& kernel) {
  const Liveness liveness(kernel);
  std::vector<Interval> intervals = liveness.intervals();
  std::vector<bool> wide(kernel.registers), special(kernel.registers);
  each_register(kernel, [&](const Operand& o) {
    if (o.is_register()) wide[o.id] = o.width == 8;
  });
  for (const Operand& o : kernel.special) {
    if (!o.is_register()) continue;
    special[o.id] = true;
    intervals[o.id].extend(0);
  }
  const std::vector<u32> at = places(kernel, intervals, wide, kernel.register_bytes);
  each_register(kernel, [&](Operand& o) {
    if (o.is_register()) o.at = at[o.id];
  });

  kernel.tracked_registers.assign(kernel.registers, false);
  kernel.tracked_predicates.assign(kernel.predicates, false);
  for (u32 r = 0; r < kernel.registers; ++r)
    kernel.tracked_registers[r] = !special[r] && liveness.needed_at_begin(r);
  for (u32 p = 0; p < kernel.predicates; ++p)
    kernel.tracked_predicates[p] = liveness.needed_at_begin(kernel.registers + p);
  for (Instruction& i : kernel.code) {
    const auto tracked = [&](const Operand& o) {
      return (o.is_register() && kernel.tracked_registers[o.id]) ||
             (o.is_predicate() && kernel.tracked_predicates[o.id]);
    };
    i.tracked = std::any_of(i.d.begin(), i.d.end(), tracked) ||
                std::any_of(i.s.begin(), i.s.end(), tracked) || tracked(i.predicate) ||
                tracked(i.mask) ||
                (i.guard >= 0 && kernel.tracked_predicates[static_cast<u32>(i.guard)]);
    kernel.tracks = kernel.tracks || i.tracked;
  }
}

}  // namespace cudp::ptx
