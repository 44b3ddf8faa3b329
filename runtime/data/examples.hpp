#pragma once
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "runtime/data/dataset.hpp"
#include "runtime/data/share.hpp"

namespace cudp {

/// Elements that one example has in each array of a data set.
struct ExampleWidths {
  std::size_t numbers = 0;  ///< of bytes, floats and tokens
  std::size_t coded = 0;    ///< bytes of a coded row
};
ExampleWidths widths_of(const Dataset& data);

/// Calls visit(array of `to`, that of `from`, elements of one example) for each array that `from`
/// has. `to` is of the same kind.
template <class To, class From, class Visit>
void for_each_array(To& to, const From& from, const Visit& visit) {
  const ExampleWidths widths = widths_of(from);
  if (!from.bytes.empty()) visit(to.bytes, from.bytes, widths.numbers);
  if (!from.floats.empty()) visit(to.floats, from.floats, widths.numbers);
  if (!from.coded.empty()) visit(to.coded, from.coded, widths.coded);
  if (!from.tokens.empty()) visit(to.tokens, from.tokens, widths.numbers);
  if (!from.lengths.empty()) visit(to.lengths, from.lengths, std::size_t{1});
  visit(to.labels, from.labels, std::size_t{1});
  if (!from.targets.empty()) visit(to.targets, from.targets, std::size_t{1});
  if (!from.numbers.empty()) visit(to.numbers, from.numbers, std::size_t{1});
  if (!from.first_rows.empty()) visit(to.first_rows, from.first_rows, std::size_t{1});
}

/// A data set of the same kind without examples.
Dataset empty_like(const Dataset& data);
/// Takes all examples away and keeps the memory.
void clear_examples(Dataset& data);
/// Adds the examples of `from`, a range or one of them, to `to`, which is of the same kind.
void append_examples(const Dataset& from, Dataset& to);
void append_examples(const Dataset& from, ExampleRange range, Dataset& to);
void append_example(const Dataset& from, std::size_t example, Dataset& to);
/// The examples listed, in that order.
Dataset select_examples(const Dataset& data, std::span<const std::size_t> which);
/// Adds examples whose features, label and target are all 0.
void append_blanks(Dataset& data, std::size_t count);

/// Features of coded or dense float examples: x [shape.size()], written. Throws Error for others.
void read_floats(const Dataset& data, std::size_t example, std::span<float> x);
/// The same for examples [first, first + count): x [count, shape.size()], written.
void read_floats(const Dataset& data, std::size_t first, std::size_t count, std::span<float> x);
/// Coded examples as dense floats; others as they are.
Dataset dense(Dataset data);

/// The rows of a table as an encoder makes them, for tests and benchmarks: numbers [n, numbers],
/// codes [n, codes], labels [n], n from the labels. Throws Error on what the record cannot hold, on
/// a code that a row has twice, or that is a number's feature.
Dataset coded_dataset(RowLayout layout, std::span<const float> numbers,
                      std::span<const std::uint32_t> codes, std::vector<std::uint8_t> labels,
                      int classes);

}  // namespace cudp
