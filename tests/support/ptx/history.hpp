#pragma once
// What is known to come before what: streams, events, recorded graphs and a host that waits.
#include <vector>

#include "tests/support/ptx/memory.hpp"

namespace cudp::ptx {

/// How far lines of work are known to have got: of each, so many of its operations have ended.
class Clock {
 public:
  u32 of(u32 line) const { return line < ended_.size() ? ended_[line] : 0; }
  void set(u32 line, u32 operations);
  /// Both are known.
  void join(const Clock& other);
  /// Whether all that `other` knows is known here.
  bool covers(const Clock& other) const;

 private:
  std::vector<u32> ended_;
};

/// All operations, each in a line: a stream's, or that of a branch of a recorded graph. Operations
/// of a line come one after the other; those of two lines in no order, unless a clock says so.
class History {
 public:
  /// A line that nothing orders after any other.
  u32 new_line();
  /// Lines may be used again when all of their operations are known to have ended.
  void give_back(u32 line) { unused_.push_back(line); }

  /// The next operation of a line begins, when `known` had ended and all before it in its line; its
  /// intervals are at `first_interval` and beyond. Returns what is known when it has ended.
  Clock begin(u32 line, Clock known, u32 first_interval);

  /// The host knows that all this has ended, and so do all operations that it asks for from now on.
  void host_waits_for(const Clock& clock) { host_.join(clock); }
  void host_waits_for_all() { host_.join(latest_); }
  const Clock& host() const { return host_; }

  bool is_all_known(const Clock& clock) const { return clock.covers(latest_); }
  /// Whether the operation that had this interval is among those that `clock` knows.
  bool is_known(u32 interval, const Clock& clock) const;

 private:
  struct Operation {
    u32 first_interval, line, number;
  };
  std::vector<Operation> operations_;  // in the order in which they ran
  Clock latest_, host_;
  u32 lines_ = 0;
  std::vector<u32> unused_;
};

/// The HappensBefore of an operation that begins when `known` has ended.
class KnownOperations final : public HappensBefore {
 public:
  KnownOperations(const History& history, const Clock& known) : history_(history), known_(known) {
    all_before_ = history.is_all_known(known);
  }

 protected:
  bool known_before(u32 interval) const override { return history_.is_known(interval, known_); }

 private:
  const History& history_;
  const Clock& known_;
};

}  // namespace cudp::ptx
