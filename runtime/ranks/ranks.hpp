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

/// Whether waiting for rank 0 has a time limit (Ranks::timeout). It has none while rank 0 works
/// alone between two commands.
enum class Patience : std::uint8_t { limited, unlimited };

/// The processes that train together. All of them call the same functions in the same order and
/// with the same `what`, the name of the call for messages. Rank 0 has the run's folder. Every
/// function but check and abort returns when all ranks have called it. It throws RanksError if they
/// do not, or if one of them has ended the training.
class Ranks {
 public:
  Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  virtual ~Ranks() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_rank() const = 0;  ///< index of this rank among those on the same node
  virtual int local_size() const = 0;
  virtual std::string transport() const = 0;  ///< how ranks communicate, for messages

  /// Replaces each number by its sum over all ranks, modulo 2^64.
  virtual void sum(const char* what, std::span<std::int64_t> numbers) = 0;
  /// Replaces the bytes by those of rank 0.
  virtual void broadcast(const char* what, std::span<std::byte> bytes,
                         Patience patience = Patience::limited) = 0;
  /// Returns on rank 0 the bytes of each rank, in order; their sizes may differ. Returns nothing on
  /// other ranks.
  virtual std::vector<std::string> gather(const char* what, std::span<const std::byte> mine) = 0;
  /// Throws RanksError if another rank is known to have ended the training, or to be lost. Does not
  /// wait. Called while a rank waits for something other than these functions.
  virtual void check() {}
  /// Returns how long a rank waits for another one before it throws.
  virtual std::chrono::milliseconds timeout() const = 0;
  /// Ends the training on all ranks: each throws RanksError with the text `why`, or has already
  /// ended. Does not wait.
  virtual void abort(const std::string& why, Exit code) noexcept = 0;

  bool alone() const { return size() == 1; }
  bool leads() const { return rank() == 0; }
};

/// Error: another rank has ended the training, or is lost.
class RanksError : public Error {
 public:
  using Error::Error;
};

/// Returns the only rank of a training in a single process.
Ranks& alone();

/// Replaces each number, a multiple of `unit`, by its sum over all ranks. Sums are exact below 2^53
/// units.
void sum_multiples(Ranks& ranks, const char* what, std::span<double> numbers, double unit);

/// Replaces the text by that of rank 0.
void broadcast_text(Ranks& ranks, const char* what, std::string& text);
std::vector<std::string> gather_text(Ranks& ranks, const char* what, const std::string& mine);

}  // namespace cudp
