#include "runtime/data/examples.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "runtime/base/error.hpp"

namespace cudp {
namespace {

std::size_t to_size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// Appends elements [first, last) of the array `from` to `to`. To, From: types of the arrays.
template <class To, class From>
void append_part(To& to, const From& from, std::size_t first, std::size_t last) {
  to.insert(to.end(), from.begin() + static_cast<std::ptrdiff_t>(first),
            from.begin() + static_cast<std::ptrdiff_t>(last));
}

/// Copies everything but the examples from `data` to `out`: shape, classes, kind of features.
void make_like(const Dataset& data, Dataset& out) {
  out.shape = data.shape;
  out.classes = data.classes;
  out.holds_bytes = data.is_bytes();
  out.layout = data.layout;
  out.words = data.words;
  out.vectors = data.vectors;
  out.scale = data.scale;
  out.shift = data.shift;
}

/// Calls visit(array) for the array of `data` that holds its features.
template <class Visit>
void visit_features(Dataset& data, const Visit& visit) {
  if (data.is_coded())
    visit(data.coded);
  else if (data.is_text())
    visit(data.tokens);
  else if (data.is_bytes())
    visit(data.bytes);
  else
    visit(data.floats);
}

/// Replaces the content of `to` by the elements of `from` with the indices `which`. If `from` is
/// empty, because the data set does not have this array, `to` becomes empty. To, From: types of the
/// arrays.
template <class From, class To>
void gather(const From& from, std::span<const std::uint32_t> which, To& to) {
  to.clear();
  if (from.empty()) return;
  for (const std::uint32_t i : which) to.push_back(from[i]);
}

/// Returns the address of the first byte of a data set's features in memory, whatever their kind.
const std::uint8_t* features_in_memory(const Dataset& data) {
  const auto bytes_of = [](const auto& array) {
    return reinterpret_cast<const std::uint8_t*>(array.data());
  };
  if (data.is_coded()) return data.coded.data();
  if (data.is_text()) return bytes_of(data.tokens);
  return data.is_bytes() ? data.byte_values().data() : bytes_of(data.float_values());
}

/// Returns whether `which` has at least two indices and these are consecutive, in ascending order.
/// The examples can then be copied as one piece.
bool is_range(std::span<const std::uint32_t> which) {
  if (which.size() < 2) return false;
  for (std::size_t i = 0; i < which.size(); ++i)
    if (which[i] != which[0] + i) return false;
  return true;
}

/// Checks features of `data` that were copied: returns whether all codes (of table rows) or word
/// ids (of texts) are in range, so that kernels can use them as indices. features: the copies,
/// [count, feature_bytes(data)].
bool are_in_range(const Dataset& data, const std::uint8_t* features, std::size_t count) {
  if (data.is_text()) {
    const std::span words(reinterpret_cast<const std::uint16_t*>(features),
                          count * to_size(data.shape.size()));
    return std::ranges::all_of(words, [&](std::uint16_t w) { return w < data.words; });
  }
  if (!data.is_coded()) return true;
  const CodedRows rows = data.layout->view(features);
  for (std::size_t i = 0; i < count; ++i)
    for (int k = 0; k < rows.codes; ++k)
      if (code_of(rows, rows.rows + to_size(rows.row_bytes) * i, k) >
          static_cast<std::uint32_t>(rows.features))
        return false;
  return true;
}

}  // namespace

ExampleWidths widths_of(const Dataset& data) {
  return {.numbers = to_size(data.shape.size()),
          .coded = data.is_coded() ? to_size(data.layout->row_bytes()) : 0};
}

std::size_t feature_bytes(const Dataset& data) {
  const auto [numbers, coded] = widths_of(data);
  if (data.is_coded()) return coded;
  if (data.is_text()) return numbers * sizeof(std::uint16_t);
  return data.is_bytes() ? numbers : numbers * sizeof(float);
}

void own_features(Dataset& data) {
  if (data.borrowed == nullptr) return;
  const std::shared_ptr<const BorrowedFeatures> borrowed = std::move(data.borrowed);
  data.borrowed = nullptr;
  data.bytes.assign(borrowed->bytes.begin(), borrowed->bytes.end());
  data.floats.assign(borrowed->floats.begin(), borrowed->floats.end());
}

Dataset empty_like(const Dataset& data) {
  Dataset out;
  make_like(data, out);
  return out;
}

void clear_examples(Dataset& data) {
  data.borrowed = nullptr;
  data.rows = nullptr;
  data.bytes.clear();
  data.floats.clear();
  data.coded.clear();
  data.tokens.clear();
  data.lengths.clear();
  data.labels.clear();
  data.targets.clear();
  data.numbers.clear();
  data.first_rows.clear();
}

void append_examples(const Dataset& from, Dataset& to) {
  own_features(to);
  for_each_array(to, from, [](auto& all, const auto& more, std::size_t) {
    append_part(all, more, 0, more.size());
  });
}

void append_examples(const Dataset& from, ExampleRange range, Dataset& to) {
  own_features(to);
  for_each_array(to, from, [&](auto& all, const auto& more, std::size_t width) {
    append_part(all, more, range.begin * width, range.end * width);
  });
}

void append_example(const Dataset& from, std::size_t example, Dataset& to) {
  append_examples(from, {example, example + 1}, to);
}

Dataset select_examples(const Dataset& data, std::span<const std::size_t> which) {
  Dataset out = empty_like(data);
  for_each_array(out, data, [&](auto& to, const auto& from, std::size_t width) {
    to.reserve(which.size() * width);
    for (const std::size_t i : which) append_part(to, from, i * width, (i + 1) * width);
  });
  return out;
}

void append_blanks(Dataset& data, std::size_t count) {
  own_features(data);
  const std::size_t first = data.size();
  for_each_array(data, data, [&](auto& to, const auto&, std::size_t width) {
    to.resize(to.size() + count * width);
  });
  if (!data.is_coded()) return;
  const std::size_t width = to_size(data.layout->row_bytes());
  data.coded.resize(data.size() * width);
  for (std::size_t i = first; i < data.size(); ++i) {
    RowWriter row(*data.layout, data.coded.data() + i * width);
    for (int k = 0; k < data.layout->numbers(); ++k) row.number(0.0f);
    for (int k = 0; k < data.layout->codes; ++k)
      row.code(static_cast<std::uint32_t>(data.layout->features));
    row.finish();
  }
}

void keep_arrays_in(const std::filesystem::path& folder, Dataset& data) {
  const RowMemory files(folder);
  data.targets = RowArray<float>(RowAllocator<float>(files));
  data.numbers = RowArray<std::uint32_t>(RowAllocator<std::uint32_t>(files));
  data.first_rows = RowArray<std::uint32_t>(RowAllocator<std::uint32_t>(files));
}

void move_features(Dataset& data, RowFileWriter& to) {
  visit_features(data, [&](auto& array) {
    to.append({reinterpret_cast<const std::uint8_t*>(array.data()),
               array.size() * sizeof(*array.data())});
    array.clear();
  });
}

void copy_features(const Dataset& from, std::span<const std::uint32_t> which, std::uint8_t* to) {
  if (from.rows == nullptr) {
    const std::size_t bytes = feature_bytes(from);
    const std::uint8_t* const features = features_in_memory(from);
    for (const std::uint32_t i : which) {
      std::memcpy(to, features + i * bytes, bytes);
      to += bytes;
    }
    return;
  }
  // Rows that follow one another are read as one piece.
  if (is_range(which))
    from.rows->copy(which.front(), which.size(), to);
  else
    from.rows->copy(which, to);
  check_features(from, to, which.size());
}

void check_features(const Dataset& data, const std::uint8_t* features, std::size_t count) {
  if (!are_in_range(data, features, count))
    throw InputError(data.rows->name() + ": expected rows as they were written, found others");
}

std::uint8_t* FetchedExamples::fetch_all_but_features(const Dataset& from,
                                                      std::span<const std::uint32_t> which) {
  ensure(from.rows != nullptr, "the features must be in a file");
  make_like(from, copies_);
  copies_.first = from.first;
  const std::size_t row_bytes = from.rows->row_bytes();
  std::uint8_t* features = nullptr;
  visit_features(copies_, [&](auto& array) {
    array.resize(which.size() * row_bytes / sizeof(*array.data()));
    features = reinterpret_cast<std::uint8_t*>(array.data());
  });
  gather(from.lengths, which, copies_.lengths);
  gather(from.labels, which, copies_.labels);
  gather(from.targets, which, copies_.targets);
  for (std::size_t i = indices_.size(); i < which.size(); ++i)
    indices_.push_back(static_cast<std::uint32_t>(i));
  return features;
}

const Dataset& FetchedExamples::fetch(const Dataset& from, std::span<const std::uint32_t> which) {
  copy_features(from, which, fetch_all_but_features(from, which));
  return copies_;
}

void read_floats(const Dataset& data, std::size_t example, std::span<float> x) {
  read_floats(data, example, 1, x);
}

void read_floats(const Dataset& data, std::size_t first, std::size_t count, std::span<float> x) {
  const std::size_t features = to_size(data.shape.size());
  ensure(
      x.size() == count * features && !data.is_bytes() && !data.is_text() && data.rows == nullptr,
      "the features must be floats in memory, and have room");
  if (!data.is_coded()) {
    std::copy_n(data.float_values().begin() + static_cast<std::ptrdiff_t>(first * features),
                x.size(), x.begin());
    return;
  }
  const CodedRows rows = data.coded_rows();
  for (std::size_t i = 0; i < count; ++i)
    expand_row(rows, rows.rows + to_size(rows.row_bytes) * (first + i),
               x.subspan(i * features, features));
}

Dataset dense(Dataset data) {
  if (!data.is_coded()) return data;
  std::vector<float> floats(data.size() * to_size(data.shape.size()));
  read_floats(data, 0, data.size(), floats);
  data.floats = std::move(floats);
  data.coded = {};
  data.layout = nullptr;
  return data;
}

Dataset coded_dataset(RowLayout layout, std::span<const float> numbers,
                      std::span<const std::uint32_t> codes, std::vector<std::uint8_t> labels,
                      int classes) {
  Dataset data;
  data.shape = {layout.features, 1, 1};
  data.classes = classes;
  data.labels = std::move(labels);
  const std::size_t n = data.size();
  const std::size_t width = to_size(layout.row_bytes());
  const auto a_row = to_size(layout.numbers());
  const auto row_codes = to_size(layout.codes);
  ensure(numbers.size() == n * a_row && codes.size() == n * row_codes,
         "every row must have all numbers and codes");
  data.coded.resize(n * width);
  std::vector<bool> taken(to_size(layout.features) + 1);
  for (std::size_t i = 0; i < n; ++i) {
    RowWriter row(layout, data.coded.data() + i * width);
    std::fill(taken.begin(), taken.end(), false);
    for (const std::int32_t f : layout.number_feature) taken.at(to_size(f)) = true;
    taken.back() = false;
    for (const float x : numbers.subspan(i * a_row, a_row)) row.number(x);
    for (const std::uint32_t c : codes.subspan(i * row_codes, row_codes)) {
      row.code(c);
      ensure(!taken[c], "a feature must have one number or one code");
      taken[c] = c < to_size(layout.features);
    }
    row.finish();
  }
  data.layout = std::make_shared<const RowLayout>(std::move(layout));
  return data;
}

}  // namespace cudp
