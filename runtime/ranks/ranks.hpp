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

/// Time limit of a wait for rank 0: the time-out, or none. The work that rank 0 does alone, between
/// two orders, has no time limit.
enum class Patience : std::uint8_t { limited, unlimited };

/// The processes of one training. All of them call the same functions in the same order and with
/// the same `what`, which names the call in an error if a rank does not make it. Rank 0 has the
/// run's folder. Every function but check and abort returns when all ranks have called it. It
/// throws RanksError if they do not, or if one of them has ended the training.
class Ranks {
 public:
  Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  virtual ~Ranks() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_rank() const = 0;  ///< rank among those of this node
  virtual int local_size() const = 0;
  virtual std::string transport() const = 0;  ///< description for people

  /// Replaces numbers by their sums over all ranks, modulo 2^64.
  virtual void sum(const char* what, std::span<std::int64_t> numbers) = 0;
  /// Replaces bytes by those of rank 0.
  virtual void broadcast(const char* what, std::span<std::byte> bytes,
                         Patience patience = Patience::limited) = 0;
  /// Returns on rank 0 the bytes of each rank, in order; their sizes may differ. Returns nothing on
  /// other ranks.
  virtual std::vector<std::string> gather(const char* what, std::span<const std::byte> mine) = 0;
  /// Throws RanksError if another rank is known to have ended the training, or to be lost. Does not
  /// wait. Used while a rank waits for something else than the functions above.
  virtual void check() {}
  /// Returns the time-out of a wait for a rank.
  virtual std::chrono::milliseconds timeout() const = 0;
  /// Ends the training on all ranks: each throws RanksError with this line, or has ended. Does not
  /// wait.
  virtual void abort(const std::string& why, Exit code) noexcept = 0;

  bool alone() const { return size() == 1; }
  bool leads() const { return rank() == 0; }
};

/// The training was ended by another rank, or has lost one.
class RanksError : public Error {
 public:
  using Error::Error;
};

/// Returns the ranks of a training in a single process.
Ranks& alone();

/// Replaces numbers, multiples of `unit`, by their sums over all ranks. The sums are exact below
/// 2^53 units.
void sum_multiples(Ranks& ranks, const char* what, std::span<double> numbers, double unit);

/// Replaces text by that of rank 0.
void broadcast_text(Ranks& ranks, const char* what, std::string& text);
std::vector<std::string> gather_text(Ranks& ranks, const char* what, const std::string& mine);

}  // namespace cudp
