#include <algorithm>

#include "runtime/base/error.hpp"
#include "runtime/device/cpu/workspace.hpp"

namespace cudp::cpu {
namespace {

/// Embedding: maps words to rows of a table, which are the data set's vectors or trained
/// parameters. An example's gradient has one row for each different trained word of the text: the
/// sum of the output's gradient over all positions of the word. No other row of the table is read
/// or written.
class CpuEmbedding final : public CpuLayer {
 public:
  explicit CpuEmbedding(const Embedding& layer) : layer_(layer) {}

  bool stores_example_gradient() const override { return layer_.trainable; }
  bool takes_unpadded_input() const override { return true; }

  void forward(Workspace& w, int first, int count) const override {
    const WordVectors* const vectors = w.data->vectors.get();
    for (int e = first; e < first + count; ++e)
      for (int t = 0; t < w.length(e); ++t) {
        float* const y = w.value(out(), e) + out().layout.at(0, t);
        const int word = w.words(e)[t];
        if (word < rows_)
          std::copy_n(w.weights.packed + row(word), columns(), y);
        else if (vectors != nullptr)
          std::copy_n(vectors->values.data() + std::int64_t{word} * columns(), columns(), y);
        else
          std::fill_n(y, columns(), 0.0f);
        std::fill(y + columns(), y + stride(), 0.0f);
      }
  }

  void gradient(Workspace& w, int first, int count) const override {
    if (!layer_.trainable) return;
    ensure(w.coordinates == nullptr, "a trainable embedding's gradients are not transformed");
    for (int e = first; e < first + count; ++e) {
      const int runs = make_runs(w, e);
      w.norm(e, group()) = w.kernels.square_sum(w.example_gradient(gradient_), runs * stride());
    }
  }

  void add(Workspace& w, int first, int count, const GradientSum& sum) const override {
    if (!layer_.trainable) return;
    for (int e = first; e < first + count; ++e) {
      const float factor = w.factor(e, group());
      if (factor == 0.0f) continue;
      const std::int32_t* const numbers = w.numbers(numbers_);
      const float* g = w.example_gradient(gradient_);
      for (int i = 0; i < numbers[0]; ++i, g += stride()) {
        const std::int64_t at = row(numbers[1 + i]);
        if (sum.plain != nullptr)
          w.kernels.add_scaled({.acc = sum.plain + at, .g = g, .factor = factor, .n = stride()});
        else
          w.kernels.add_rounded(
              {.units = sum.units + at, .g = g, .scale = factor * sum.inverse_grid, .n = stride()});
      }
    }
  }

 private:
  void reserve(Storage& s) override {
    if (!layer_.trainable) return;
    const ParameterTensor& weight = parameter(0);
    rows_ = weight.shape[0];
    packed_ = Storage::reserve(s.packed, rows_ * stride());
    const auto width = static_cast<std::size_t>(columns());
    for (std::size_t j = 0; j < weight.size; ++j)
      s.packed_offset[weight.offset + j] =
          narrow(row(static_cast<int>(j / width)) + static_cast<std::int64_t>(j % width));
    const std::int64_t words = out().layout.width;
    gradient_ = Storage::reserve(s.example_gradient, words * stride());
    numbers_ = Storage::reserve(s.numbers, 1 + 2 * words);
  }

  /// Computes the gradient of example e: one row of floats for each different trained word of its
  /// text. Returns the number of rows, and stores it in numbers[0], followed by the word of each
  /// row. Writes the rows to the memory for an example's gradient. The gradients at all positions
  /// of a word are added in the order of the text. w: the thread's workspace.
  int make_runs(Workspace& w, int e) const {
    std::int32_t* const numbers = w.numbers(numbers_);
    std::int32_t* const places = numbers + 1 + out().layout.width;
    const std::uint16_t* const words = w.words(e);
    int count = 0;
    for (int t = 0; t < w.length(e); ++t)
      if (words[t] < rows_) places[count++] = t;
    std::sort(places, places + count,
              [&](int a, int b) { return words[a] != words[b] ? words[a] < words[b] : a < b; });
    const float* const dy = w.gradient(out(), e);
    float* g = w.example_gradient(gradient_);
    int runs = 0;
    for (int i = 0; i < count; g += stride()) {
      const std::uint16_t word = words[places[i]];
      numbers[1 + runs++] = word;
      std::copy_n(dy + out().layout.at(0, places[i++]), stride(), g);
      for (; i < count && words[places[i]] == word; ++i)
        w.kernels.add_scaled(
            {.acc = g, .g = dy + out().layout.at(0, places[i]), .factor = 1.0f, .n = stride()});
    }
    numbers[0] = runs;
    return runs;
  }

  int columns() const { return out().layout.channels; }
  std::int64_t stride() const { return out().layout.stride; }
  /// Returns the offset of a word's row in the packed weights.
  std::int64_t row(int word) const { return packed_ + word * stride(); }

  Embedding layer_;
  int rows_ = 0;  ///< number of trained rows of the table
  std::int64_t packed_ = 0;
  std::int64_t gradient_ = 0;
  std::int64_t numbers_ = 0;
};

}  // namespace

std::unique_ptr<CpuLayer> make_layer(const Embedding& layer) {
  return std::make_unique<CpuEmbedding>(layer);
}

}  // namespace cudp::cpu
