#include "runtime/device/linear_data.hpp"

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "kernels/linear/linear_model.hpp"
#include "runtime/base/error.hpp"
#include "runtime/data/examples.hpp"

namespace cudp {
namespace {

/// Converts the features of an example to floats and writes them to x, [features].
void read(const Dataset& data, std::size_t example, std::span<float> x) {
  if (!data.is_bytes()) {
    read_floats(data, example, x);
    return;
  }
  for (std::size_t j = 0; j < x.size(); ++j)
    x[j] = data.scale * static_cast<float>(data.byte_values()[example * x.size() + j]) + data.shift;
}

/// Copies one example, with its label and norm, from the data set to position `to` in the tiles of
/// `out`. buffer: scratch memory, [features].
void put(const Dataset& data, std::size_t example, std::size_t to, std::span<float> buffer,
         LinearData& out) {
  const auto d = static_cast<std::size_t>(out.d);
  float* x = out.features.data() + to / kTile * d * kTile + to % kTile;
  double square = 1.0;
  read(data, example, buffer);
  for (std::size_t j = 0; j + 1 < d; ++j) {
    const float v = buffer[j];
    x[j * kTile] = v;
    square += static_cast<double>(v) * v;
  }
  x[(d - 1) * kTile] = 1.0f;
  out.signs[to] = data.labels[example] != 0 ? 1.0f : -1.0f;
  out.norms[to] = static_cast<float>(std::sqrt(square) * (1.0 + 0x1p-22));
  if (std::isfinite(square)) return;
  for (std::size_t j = 0; j < d; ++j) x[j * kTile] = 0.0f;
  out.signs[to] = 0.0f;
  out.norms[to] = 1.0f;
}

LinearData space_for(const Dataset& data, std::size_t examples) {
  ensure(data.rows == nullptr, "the features must be in memory");
  LinearData out;
  out.d = data.shape.size() + 1;
  out.tiles = static_cast<std::int64_t>((examples + kTile - 1) / kTile);
  const std::size_t slots = static_cast<std::size_t>(out.tiles) * kTile;
  out.features = AlignedVector<float>(slots * static_cast<std::size_t>(out.d));
  out.signs = AlignedVector<float>(slots);
  out.norms = AlignedVector<float>(slots);
  for (std::size_t i = examples; i < slots; ++i) out.norms[i] = 1.0f;
  return out;
}

}  // namespace

void check_linear_data(const Dataset& train) {
  if (train.classes != 2)
    throw InputError("a linear model of one score: expected two classes, found " +
                     std::to_string(train.classes));
}

LinearData linear_data(const Dataset& data) {
  LinearData out = space_for(data, data.size());
  std::vector<float> buffer(static_cast<std::size_t>(data.shape.size()));
  for (std::size_t i = 0; i < data.size(); ++i) put(data, i, i, buffer, out);
  return out;
}

LinearData linear_data(const Dataset& data, std::span<const std::uint32_t> examples) {
  LinearData out = space_for(data, examples.size());
  std::vector<float> buffer(static_cast<std::size_t>(data.shape.size()));
  for (std::size_t i = 0; i < examples.size(); ++i) put(data, examples[i], i, buffer, out);
  return out;
}

}  // namespace cudp
