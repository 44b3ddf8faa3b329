#pragma once
// Order of operations, as streams, events, recorded graphs and a waiting host establish it.
#include <vector>

#include "tests/support/ptx/memory.hpp"

namespace cudp::ptx {

/// Vector clock: for each line of work, the number of its operations that are known to have ended.
class Clock {
 public:
  u32 of(u32 line) const { return line < ended_.size() ? ended_[line] : 0; }
  void set(u32 line, u32 operations);
  /// Adds everything that `other` knows.
  void join(const Clock& other);
  /// Returns whether this clock knows everything that `other` knows.
  bool covers(const Clock& other) const;

 private:
  std::vector<u32> ended_;
};

/// All operations. Each belongs to a line: a stream, or a branch of a recorded graph. Operations of
/// one line run one after the other; those of two lines are unordered unless a clock orders them.
class History {
 public:
  /// Returns a new line, which is not ordered after any other.
  u32 new_line();
  /// Allows a line to be used again. Call it when all of its operations are known to have ended.
  void give_back(u32 line) { unused_.push_back(line); }

  /// Begins the next operation of a line, after the operations in `known` and the earlier ones of
  /// its line. Its intervals are numbered from first_interval on. Returns the clock at its end.
  Clock begin(u32 line, Clock known, u32 first_interval);

  /// Records that the host has waited for these operations, so that everything it starts later is
  /// ordered after them.
  void host_waits_for(const Clock& clock) { host_.join(clock); }
  void host_waits_for_all() { host_.join(latest_); }
  const Clock& host() const { return host_; }

  bool is_all_known(const Clock& clock) const { return clock.covers(latest_); }
  /// Returns whether `clock` knows the operation of this interval.
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

/// HappensBefore of an operation that begins after the operations in `known`.
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
