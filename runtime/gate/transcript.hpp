#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "privacy/transcript/records.hpp"
#include "runtime/gate/witness.hpp"

namespace cudp {

/// Memory with the form of a file, for a transcript: it has no name, is its owner's alone, and is
/// gone with the last process that has it open, however that ends. A process that is forked off
/// writes to the same.
class TranscriptMemory {
 public:
  /// Throws Error where the system gives none.
  TranscriptMemory();
  ~TranscriptMemory();
  TranscriptMemory(const TranscriptMemory&) = delete;
  TranscriptMemory& operator=(const TranscriptMemory&) = delete;

  int file() const { return file_; }
  /// All that was written until now.
  std::string content() const;

 private:
  int file_ = -1;
};

/// Writes a seeded run down, for whoever checks it (privacy/verify/checker.hpp).
class Transcript : public Observer {
 public:
  /// Appends to `file`, an open file's number, which outlives it and is nobody else's to read.
  Transcript(const SeededKey& key, int file) : Observer(key), file_(file) {}

  void sees(const transcript::Record& record) override;
  void adds_noise(const Leaving& what, std::span<const std::int64_t> sums) override;
  void adds_noise(const Leaving& what, std::span<const double> numbers) override;
  /// Nothing of a run that did not begin as a seeded one.
  void leaves(const Leaving& what, std::span<std::byte> values) override;

 private:
  void begins(const transcript::Begin& run, std::function<std::uint64_t()> charged) override;

  /// The properties of a release that are known before its values.
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
