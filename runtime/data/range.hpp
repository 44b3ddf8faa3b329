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

/// Sets the position of a rank's examples within the whole data set: part.first, the index of their
/// first one, and part.whole, the number of examples of the whole data set. part: the examples of
/// one rank (process). share: the rank, and the number of ranks.
void record_range(Dataset& part, Share share, std::size_t whole);

/// Collects the examples that belong to one rank (process), a contiguous range (Share), while a
/// data set is read block by block. Drops all others.
class KeptRange {
 public:
  /// Makes an object that keeps the features of the collected examples in memory. empty: a data set
  /// without examples that has the shape and kind of features of the data to collect, perhaps with
  /// memory reserved. share: the rank whose examples are collected. whole: number of examples that
  /// will be passed to take(); unused if there is only one rank.
  KeptRange(Dataset empty, Share share, std::uint64_t whole);
  /// Makes an object that writes the features of the collected examples to the file `to` instead of
  /// keeping them in memory. empty: a data set without examples, with the shape and kind of
  /// features of the data to collect. share: the rank whose examples are collected. whole: number
  /// of examples that will be passed to take(); unused if there is only one rank.
  KeptRange(Dataset empty, Share share, std::uint64_t whole, RowFileWriter to);

  /// Call once with each block of the data set, in order. Keeps those examples of the block that
  /// belong to the rank.
  void take(const Dataset& block);
  /// Call once with each example of the data set, in order. Keeps the example if it belongs to the
  /// rank, and returns whether it belongs to the rank. example: index of the example in `block`.
  bool take(const Dataset& block, std::size_t example);
  /// Sets the sampling index (Dataset::numbers) of the last example that take() kept.
  void number(std::uint32_t index) { kept_.numbers.push_back(index); }
  /// Returns the collected examples. Requires that all examples of the data set were passed to
  /// take(). Throws Error if their number differs from the one that the constructor was given, i.e.
  /// if the file changed while it was read. file: name of the file, for the message.
  Dataset finish(const std::string& file);

 private:
  /// Moves features that were collected in memory to the file, once there are enough of them for an
  /// efficient write. Does nothing if features are to stay in memory.
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
