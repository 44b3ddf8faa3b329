#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/ranks/ranks.hpp"

namespace cudp {

/// Memory through which the ranks of one node communicate: a mapping that forked processes, or
/// threads, share.
class SharedBoard {
 public:
  /// Allocates the shared memory for this number of ranks. Throws Error if that is not possible.
  explicit SharedBoard(int ranks);
  ~SharedBoard();
  SharedBoard(const SharedBoard&) = delete;
  SharedBoard& operator=(const SharedBoard&) = delete;

  static constexpr int kMaxRanks = 256;
  /// Size of a rank's buffer, as a number of 8-byte integers.
  static constexpr std::size_t kChunk = std::size_t{1} << 16;

  /// Description of a function call of Ranks. All ranks must make the same call, so each compares
  /// its own with those of the others.
  struct Call {
    std::uint64_t function;  ///< hash of the function's name and of its argument `what`
    std::uint64_t bytes;
    char what[64];
  };
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> arrivals;
    Call call;
  };

  int ranks() const { return ranks_; }
  Slot& slot(int rank) { return page_->slots[rank]; }
  /// Returns the buffer of a rank, kChunk integers, which all ranks can read.
  std::int64_t* numbers(int rank) { return numbers_ + static_cast<std::size_t>(rank) * kChunk; }
  /// Returns an additional buffer, kChunk integers, that belongs to all ranks together.
  std::int64_t* common() { return numbers(ranks_); }

  /// Ends the training on all ranks. Only the first call has an effect. why: reason, for error
  /// messages. code: exit code of the processes.
  void end(const std::string& why, Exit code) noexcept;
  /// Throws RanksError if a rank has called end().
  void check() const;
  bool ended() const { return page_->ended.load(std::memory_order_acquire) == kEnded; }
  std::string reason() const;
  Exit code() const;

 private:
  static constexpr std::uint32_t kEnding = 1;
  static constexpr std::uint32_t kEnded = 2;
  /// Content of the memory that all ranks (processes) share.
  struct Page {
    std::atomic<std::uint32_t> ended;  ///< state of the training: 0 (not ended), kEnding or kEnded
    std::int32_t code;
    char why[512];
    Slot slots[kMaxRanks];
  };

  int ranks_;
  std::size_t bytes_;
  Page* page_;
  std::int64_t* numbers_;
};

/// A rank that communicates with the others through a SharedBoard. watch: function that is called
/// from time to time while the rank waits for others; it may end the training.
class SharedRanks final : public Ranks {
 public:
  SharedRanks(SharedBoard& board, int rank, std::chrono::milliseconds timeout,
              std::function<void()> watch = {});

  int rank() const override { return rank_; }
  int size() const override { return board_.ranks(); }
  int local_rank() const override { return rank_; }
  int local_size() const override { return size(); }
  std::string transport() const override { return "memory of one node"; }
  void sum(const char* what, std::span<std::int64_t> numbers) override;
  void broadcast(const char* what, std::span<std::byte> bytes, Patience patience) override;
  std::vector<std::string> gather(const char* what, std::span<const std::byte> mine) override;
  void check() override;
  std::chrono::milliseconds timeout() const override { return timeout_; }
  void abort(const std::string& why, Exit code) noexcept override { board_.end(why, code); }

 private:
  void begin(const char* function, const char* what, std::size_t bytes, bool same_size,
             Patience patience = Patience::limited);
  void wait_for_all(const char* what, Patience patience = Patience::limited);

  SharedBoard& board_;
  int rank_;
  std::chrono::milliseconds timeout_;
  std::function<void()> watch_;
  std::uint64_t arrivals_ = 0;
};

}  // namespace cudp
