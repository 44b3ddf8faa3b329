#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/data/dataset.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/data/share.hpp"

namespace cudp {

/// Says where in a larger set of so many examples the set lies, which is a share's range of it.
void say_range(Dataset& part, Share share, std::size_t whole);

/// Keeps a share's range of examples that are read one block after the other; the memory of the
/// others is free once they have been taken.
class KeptRange {
 public:
  /// empty: a data set of the right kind, which may have room reserved. whole: how many examples
  /// will be taken; of no meaning where the share is all.
  KeptRange(Dataset empty, Share share, std::uint64_t whole);

  /// The next examples, all of `block`.
  void take(const Dataset& block);
  /// The next example, number `example` of `block`; returns whether it was kept.
  bool take(const Dataset& block, std::size_t example);
  /// The range, once all were taken. Throws Error naming `file` where they were not as many as was
  /// said: it was changed meanwhile.
  Dataset finish(const std::string& file);

 private:
  Dataset kept_;
  Share share_;
  std::uint64_t whole_;
  ExampleRange range_;
  std::size_t taken_ = 0;
};

}  // namespace cudp
