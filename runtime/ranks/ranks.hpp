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

/// Whether ranks wait for rank 0 only for a limited time (Ranks::timeout) or without limit. They
/// wait without limit for the next command, because rank 0 may do work of its own before that.
enum class Patience : std::uint8_t { limited, unlimited };

/// The ranks: processes that train one model together. All of them must call the same functions of
/// this class in the same order, with the same `what`, a name of the call for error messages. Every
/// function except check() and abort() returns when all ranks have called it; it throws RanksError
/// if a rank does not call it, or has ended the training. Only rank 0 writes the run's files.
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
  virtual std::string transport() const = 0;  ///< how ranks communicate, as a text for messages

  /// Replaces each number by its sum over all ranks, modulo 2^64. Requires that all ranks have
  /// equally many numbers.
  virtual void sum(const char* what, std::span<std::int64_t> numbers) = 0;
  /// Replaces the bytes on all ranks by those of rank 0. Requires that all ranks have equally many
  /// bytes. patience: whether the other ranks wait for rank 0 for a limited time.
  virtual void broadcast(const char* what, std::span<std::byte> bytes,
                         Patience patience = Patience::limited) = 0;
  /// Sends the bytes `mine` of each rank to rank 0. Returns on rank 0 the bytes of all ranks, in
  /// the order of ranks; their sizes may differ. Returns an empty vector on other ranks.
  virtual std::vector<std::string> gather(const char* what, std::span<const std::byte> mine) = 0;
  /// Throws RanksError if it is known that another rank has ended the training, or that its process
  /// is lost. Does not wait. Call it while this rank waits for something other than a rank, e.g. a
  /// device.
  virtual void check() {}
  /// Returns how long a rank waits for another one before it throws.
  virtual std::chrono::milliseconds timeout() const = 0;
  /// Ends the training on all ranks: the next function of this class that another rank calls, or
  /// waits in, throws RanksError with the text `why`. Does not wait. code: exit code of the
  /// processes.
  virtual void abort(const std::string& why, Exit code) noexcept = 0;

  bool alone() const { return size() == 1; }
  bool leads() const { return rank() == 0; }
};

/// Error that is thrown on a rank if another rank has ended the training, or is lost.
class RanksError : public Error {
 public:
  using Error::Error;
};

/// Returns the Ranks object for a training in a single process, which is rank 0 of 1.
Ranks& alone();

/// Replaces each number by its sum over all ranks. Requires that all numbers are integer multiples
/// of `unit`, and that all ranks have equally many. Sums are exact if they are below 2^53 times
/// `unit`.
void sum_multiples(Ranks& ranks, const char* what, std::span<double> numbers, double unit);

/// Replaces `text` on all ranks by the text of rank 0.
void broadcast_text(Ranks& ranks, const char* what, std::string& text);
std::vector<std::string> gather_text(Ranks& ranks, const char* what, const std::string& mine);

}  // namespace cudp
