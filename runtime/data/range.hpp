#pragma once
#include <cstddef>
#include <vector>

#include "runtime/data/dataset.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/data/share.hpp"

namespace cudp {

/// The range of a data set that is whole, which then says where in the whole it was.
inline Dataset only(const Dataset& whole, ExampleRange range) {
  Dataset part = empty_like(whole);
  for_each_array(part, whole, [&](auto& to, const auto& from, std::size_t width) {
    to.assign(from.begin() + static_cast<std::ptrdiff_t>(range.begin * width),
              from.begin() + static_cast<std::ptrdiff_t>(range.end * width));
  });
  part.first = range.begin;
  part.whole = whole.size();
  return part;
}

}  // namespace cudp
