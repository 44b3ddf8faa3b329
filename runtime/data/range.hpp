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

/// Sets Dataset::first and the size of the whole set in `part`, the range `share` of a set of
/// `whole` examples.
void record_range(Dataset& part, Share share, std::size_t whole);

/// Keeps a share's range of examples that are read block by block. Memory of other examples is
/// released once they are passed.
class KeptRange {
 public:
  /// empty: a data set of the right kind, which may have memory reserved. whole: number of examples
  /// that will be passed; unused if the share is everything.
  KeptRange(Dataset empty, Share share, std::uint64_t whole);
  /// Writes the features to a file in place of memory.
  KeptRange(Dataset empty, Share share, std::uint64_t whole, RowFileWriter to);

  /// Adds the next examples: all of `block`.
  void take(const Dataset& block);
  /// Adds the next example: number `example` of `block`. Returns whether it was kept.
  bool take(const Dataset& block, std::size_t example);
  /// Returns the range. Requires that all examples were passed. Throws Error naming `file` if their
  /// number differs from `whole`: the file was changed meanwhile.
  Dataset finish(const std::string& file);

 private:
  /// Moves features to the file, if there is one and if there are many.
  void unload();

  Dataset kept_;
  Share share_;
  std::uint64_t whole_;
  ExampleRange range_;
  std::size_t taken_ = 0;
  std::optional<RowFileWriter> file_;
  std::size_t moved_ = 0;  ///< number of kept examples whose features are in the file
};

}  // namespace cudp
