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

/// Sets Dataset::first and Dataset::whole of `part`, which is one rank's range, `share`, of a data
/// set of `whole` examples.
void record_range(Dataset& part, Share share, std::size_t whole);

/// Collects the examples of one rank's range (Share) of a data set that is read block by block. All
/// other examples are dropped.
class KeptRange {
 public:
  /// empty: a data set without examples, of the right kind, perhaps with memory reserved. whole:
  /// number of examples that will be passed to take(); unused if the share is the whole set.
  KeptRange(Dataset empty, Share share, std::uint64_t whole);
  /// Collects the features in the file `to` instead of in memory.
  KeptRange(Dataset empty, Share share, std::uint64_t whole, RowFileWriter to);

  /// Call with each block of the data set in order. Keeps those of its examples that are in the
  /// share.
  void take(const Dataset& block);
  /// Call with each example of the data set in order: the one with index `example` in `block`.
  /// Keeps it if it is in the share. Returns whether it is.
  bool take(const Dataset& block, std::size_t example);
  /// Sets the sampling index of the example that take() kept last.
  void number(std::uint32_t index) { kept_.numbers.push_back(index); }
  /// Returns the collected examples. Requires that take() was called for all examples of the data
  /// set. Throws Error if their number is not `whole`, i.e. if the file changed while it was read.
  /// file: name of the file, for the message.
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
