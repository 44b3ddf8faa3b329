#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "privacy/transcript/records.hpp"
#include "runtime/gate/release_observer.hpp"

namespace cudp {

/// An anonymous file in memory for a transcript (all records of a run, including secrets). Only the
/// user that created it can read it. It is freed when the last process that has it open ends. A
/// forked process writes to the same file.
class TranscriptMemory {
 public:
  /// Creates an empty file in memory. Throws Error if the system cannot.
  TranscriptMemory();
  ~TranscriptMemory();
  TranscriptMemory(const TranscriptMemory&) = delete;
  TranscriptMemory& operator=(const TranscriptMemory&) = delete;

  int file() const { return file_; }
  /// Returns the bytes that were written so far.
  std::string content() const;

 private:
  int file_ = -1;
};

/// Writes everything that happens in a seeded run, including secrets, to a file, for the verifier
/// to check (privacy/verify/checker.hpp).
class Transcript : public SecretObserver {
 public:
  /// Starts a transcript. key: proves that the run is seeded. file: an open file descriptor, to
  /// which all records are appended. It must stay open as long as this object exists, and no other
  /// user may be able to read the file.
  Transcript(const SeededKey& key, int file) : SecretObserver(key), file_(file) {}

  void on_record(const transcript::Record& record) override;
  void before_noise(const ReleasedValue& what, std::span<const std::int64_t> sums) override;
  void before_noise(const ReleasedValue& what, std::span<const double> numbers) override;
  /// Writes a record with the released values. Does nothing if begin() was not called before.
  void on_release(const ReleasedValue& what, std::span<std::byte> values) override;

 private:
  void on_begin(const transcript::Begin& run, std::function<std::uint64_t()> charged) override;

  /// The part of a release's record that is known before the released values, such as the sums
  /// without noise. It is kept here until the values are known; both are then written in one
  /// record.
  struct Pending {
    std::uint64_t charged = 0;
    std::vector<std::int64_t> sums;
    std::vector<double> scores;
  };

  void write(const transcript::Record& record) const;

  int file_;
  std::function<std::uint64_t()> charged_;
  std::map<std::pair<Stream, std::uint64_t>, Pending> pending_;
};

}  // namespace cudp
