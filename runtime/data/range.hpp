#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/data/dataset.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/data/row_file.hpp"
#include "runtime/data/share.hpp"

namespace cudp {

/// Records in `part` that it is the range `share` of a data set of `whole` examples (sets
/// Dataset::first and the whole size).
void record_range(Dataset& part, Share share, std::size_t whole);

/// Collects the examples of one rank's share from a data set that is read block by block. All other
/// examples are dropped.
class KeptRange {
 public:
  /// empty: a data set without examples, of the right kind, perhaps with memory reserved. whole:
  /// number of examples that will be passed to take(); unused if the share is the whole set.
  KeptRange(Dataset empty, Share share, std::uint64_t whole);
  /// Collects the features in the file `to` instead of in memory.
  KeptRange(Dataset empty, Share share, std::uint64_t whole, RowFileWriter to);

  /// Passes the next examples of the data set: all of `block`.
  void take(const Dataset& block);
  /// Adds one example, with index `example` in `block`. Returns whether it is in the share.
  bool take(const Dataset& block, std::size_t example);
  /// Records the sampling index of the example that take() has added last.
  void number(std::uint32_t index) { kept_.numbers.push_back(index); }
  /// Returns the collected examples. Requires that all examples were passed. Throws Error naming
  /// `file` if their number is not `whole`: the file changed while it was read.
  Dataset finish(const std::string& file);

 private:
  /// Moves collected features to the file, if there is one and if enough have been collected.
  void unload();

  Dataset kept_;
  Share share_;
  std::uint64_t whole_;
  ExampleRange range_;
  std::size_t taken_ = 0;
  std::optional<RowFileWriter> file_;
  std::size_t moved_ = 0;  ///< number of collected examples whose features are in the file
};

}  // namespace cudp
