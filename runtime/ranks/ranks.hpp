#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/error.hpp"

namespace cudp {

/// Whether a wait for rank 0 ends at the time-out. What rank 0 does between two orders, alone,
/// takes as long as it takes.
enum class Patience : std::uint8_t { limited, unlimited };

/// The processes of one training. All call the same functions in the same order, with the same
/// `what`, which names the wait where one of them does not come; rank 0 has the run's folder. Every
/// function but abort returns when all have called it, and throws RanksError where they do not, or
/// where one of them has ended the training.
class Ranks {
 public:
  Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  virtual ~Ranks() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_rank() const = 0;  ///< among those of this node
  virtual int local_size() const = 0;
  virtual std::string transport() const = 0;  ///< in words

  /// numbers <- their sums over all ranks, modulo 2^64.
  virtual void sum(const char* what, std::span<std::int64_t> numbers) = 0;
  /// bytes <- those of rank 0.
  virtual void broadcast(const char* what, std::span<std::byte> bytes,
                         Patience patience = Patience::limited) = 0;
  /// On rank 0 the bytes of each rank, in order, which may be of any number; on others nothing.
  virtual std::vector<std::string> gather(const char* what, std::span<const std::byte> mine) = 0;
  /// Throws RanksError where it is known that another rank has ended the training, or was lost;
  /// waits for nobody. For whoever waits for something else than the functions above.
  virtual void check() {}
  /// How long a rank is waited for.
  virtual std::chrono::milliseconds timeout() const = 0;
  /// Ends the training on all ranks: each throws RanksError with this line, or has ended. Waits for
  /// nobody.
  virtual void abort(const std::string& why, Exit code) noexcept = 0;

  bool alone() const { return size() == 1; }
  bool leads() const { return rank() == 0; }
};

/// A training that another rank has ended, or that has lost one.
class RanksError : public Error {
 public:
  using Error::Error;
};

/// The ranks of a training that is by itself: one.
Ranks& alone();

/// numbers, whole multiples of `unit`, <- their sums over all ranks, exact while they are below
/// 2^53 units.
void sum_multiples(Ranks& ranks, const char* what, std::span<double> numbers, double unit);

/// text <- that of rank 0.
void broadcast_text(Ranks& ranks, const char* what, std::string& text);
std::vector<std::string> gather_text(Ranks& ranks, const char* what, const std::string& mine);

}  // namespace cudp
