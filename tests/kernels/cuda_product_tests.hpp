#pragma once
// Products and weight gradients through tables, against loops in double.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/contribution/clip_math.hpp"
#include "tests/kernels/compiled_products.hpp"
#include "tests/kernels/cuda_kernel_fixture.hpp"
#include "tests/kernels/cuda_tensor_tests.hpp"

namespace cudp {
namespace {

/// The kernels of one arithmetic, for 16, 32 and 64 columns.
struct ProductKernels {
  Precision precision;
  void (*product[3])(device::Product);
  void (*thin)(device::Product);
  void (*norm[3])(WeightGradientNorm);
  void (*sum[3])(WeightGradientSum);
  void (*rows[3])(WeightGradientRows);

  /// Rows of a product's tile, unless it is thin.
  int tile_rows(int columns) const {
    return precision == Precision::tf32 && columns > 16 ? kTallRows : kTileRows;
  }
  /// A factor's number as it is multiplied.
  float taken(float v) const { return precision == Precision::tf32 ? nearest_tf32(v) : v; }
};
/// wide_terms: of a product of more than 16 columns.
template <template <int, int> class Tile, int terms, int wide_terms>
constexpr ProductKernels product_kernels() {
  using T16 = Tile<16, terms>;
  using T32 = Tile<32, terms>;
  using T64 = Tile<64, terms>;
  return {T16::kPrecision,
          {product_kernel<T16>, product_kernel<Tile<32, wide_terms>>,
           product_kernel<Tile<64, wide_terms>>},
          product_kernel<Tile<kThinColumns, kThinTerms>>,
          {weight_gradient_norm_kernel<T16>, weight_gradient_norm_kernel<T32>,
           weight_gradient_norm_kernel<T64>},
          {weight_gradient_sum_kernel<T16>, weight_gradient_sum_kernel<T32>,
           weight_gradient_sum_kernel<T64>},
          {weight_gradient_rows_kernel<T16>, weight_gradient_rows_kernel<T32>,
           weight_gradient_rows_kernel<T64>}};
}
const ProductKernels kFloatKernels = product_kernels<FloatTile, 8, 8>();
const ProductKernels kTensorKernels = product_kernels<TensorTile, 16, kTallTerms>();

/// A function and its derivative by its value, in double.
struct NamedFunction {
  Activate function;
  double (*value)(double);
  double (*derivative)(double);
};
const NamedFunction kFunctions[] = {
    {{.kind = Activation::relu},
     [](double z) { return std::fmax(z, 0.0); },
     [](double y) { return y > 0.0 ? 1.0 : 0.0; }},
    {{.kind = Activation::tanh},
     [](double z) { return std::tanh(z); },
     [](double y) { return 1.0 - y * y; }},
    {{.kind = Activation::tempered_sigmoid, .scale = 1.5f, .temperature = 3.0f, .offset = 0.25f},
     [](double z) { return 1.5 / (1.0 + std::exp(-3.0 * z)) - 0.25; },
     [](double y) { return 3.0 * (y + 0.25) * (1.0 - (y + 0.25) / 1.5); }},
};

class CudaProduct : public CudaKernel, public testing::WithParamInterface<const ProductKernels*> {
 protected:
  const ProductKernels& kernels() const { return *GetParam(); }
  template <class Args>
  void run_tiled(void (*const (&kernels)[3])(Args), const Args& args, int columns) {
    run(kernels[tile_columns(columns) / 32], args);
  }

  /// p, which has been run and gave `plain`, with each function behind it and each derivative, of
  /// values that lie otherwise than its output.
  template <class Run>
  void expect_epilogues(const device::Product& p, const std::vector<float>& plain, int live,
                        const Run& run_it) {
    const int rows = p.rows_per_example;
    const int y_size = rows * (p.columns + 3) + 1;
    const std::vector<float> y = normals(static_cast<std::size_t>(p.batch.capacity) * y_size, 7);
    for (const NamedFunction& f : kFunctions)
      for (const bool back : {false, true}) {
        device::Product with = p;
        with.out = device(std::vector<float>(plain.size(), kLoud));
        with.epilogue = {.kind = back ? Epilogue::Kind::derivative : Epilogue::Kind::value,
                         .function = f.function,
                         .y = back ? device(y) : nullptr};
        with.y_row = {nullptr, rows, y_size, 1};
        with.y_column = {nullptr, 0, 0, rows};
        run_it(with);
        const std::vector<float> got = host(with.out, plain.size());
        const int out_size = p.out_row.outer;
        for (int at = 0; at < static_cast<int>(plain.size()); ++at) {
          const int e = at / out_size;
          const int i = at % out_size / p.out_row.inner;
          const int j = at % out_size % p.out_row.inner;
          if (e >= live || j >= p.columns) {
            ASSERT_EQ(got[at], kLoud) << "written outside, at " << at;
            continue;
          }
          const double z = plain[at];
          const double want = back ? z * f.derivative(y[e * y_size + j * rows + i]) : f.value(z);
          expect_near(got[at], want, std::abs(want) + std::abs(z) + 1.0, at);
        }
      }
  }
};
INSTANTIATE_TEST_SUITE_P(All, CudaProduct, testing::Values(&kFloatKernels, &kTensorKernels),
                         [](const auto& info) {
                           return info.param->precision == Precision::tf32 ? "tf32" : "fp32";
                         });

struct ProductCase {
  int rows_per_example, terms, columns;
  bool a_along_terms, b_along_terms;
  int capacity, first;
  unsigned count;
};

TEST_P(CudaProduct, ProductThroughTablesAndStrides) {
  const ProductCase cases[] = {
      {1, 1, 1, false, false, 1, 0, 1},      {9, 17, 5, false, true, 13, 2, 11},
      {7, 8, 33, true, true, 20, 0, 100},    {1, 30, 70, true, false, 70, 0, 67},
      {65, 3, 16, false, false, 2, 0, 2},    {5, 0, 3, false, false, 3, 0, 3},
      {1, 101, 37, true, false, 40, 1, 40},   // thin
      {9, 64, 20, false, true, 9, 0, 8},      // thin
      {1500, 65, 3, false, true, 11, 0, 11},  // as long, but of many rows

      {5, 4, 3, false, false, 3, 0, 0}};
  for (const ProductCase& c : cases) {
    const int live =
        std::min<int>(c.capacity, std::max<int>(0, static_cast<int>(c.count) - c.first));
    const int a_size = 3 * (c.rows_per_example + c.terms) + 5;  // an example's, with gaps
    const std::vector<float> a = normals(static_cast<std::size_t>(c.capacity) * a_size, 1);
    const std::vector<float> b = normals((std::size_t{1} + c.columns) * (c.terms + 2), 2);
    const std::vector<float> bias = normals(static_cast<std::size_t>(c.columns), 3);
    std::vector<std::int32_t> row(static_cast<std::size_t>(c.rows_per_example));
    for (int i = 0; i < c.rows_per_example; ++i) row[i] = 2 * (c.rows_per_example - 1 - i);
    const int out_size = c.rows_per_example * (c.columns + 2);
    const auto cells = static_cast<std::size_t>(c.capacity) * out_size;

    device::Product p{};
    p.batch = batch(c.first, c.capacity, c.count);
    p.a = {device(a),
           {device(row), c.rows_per_example, a_size, 0},
           {nullptr, 0, 0, 1},
           c.a_along_terms};
    p.b = {device(b), {nullptr, 0, 0, c.terms + 2}, {nullptr, 0, 0, 1}, c.b_along_terms};
    p.bias = c.terms % 2 == 0 ? device(bias) : nullptr;
    p.out = device(std::vector<float>(cells, kLoud));
    p.out_row = {nullptr, c.rows_per_example, out_size, c.columns + 2};
    p.out_column = {nullptr, 0, 0, 1};
    p.rows_per_example = c.rows_per_example;
    p.terms = c.terms;
    p.columns = c.columns;
    EXPECT_EQ(is_thin(p), c.terms >= 64 && c.rows_per_example < 100);
    if (is_thin(p)) {
      run(kernels().thin, p);
    } else {
      p.tile_rows = kernels().tile_rows(c.columns);
      run_tiled(kernels().product, p, c.columns);
    }

    const std::vector<float> got = host(p.out, cells);
    for (int e = 0; e < c.capacity; ++e)
      for (int i = 0; i < c.rows_per_example; ++i)
        for (int j = 0; j < c.columns + 2; ++j) {
          const int at = e * out_size + i * (c.columns + 2) + j;
          if (e >= live || j >= c.columns) {
            ASSERT_EQ(got[at], kLoud) << "written outside, at " << at;
            continue;
          }
          double want = p.bias != nullptr ? bias[j] : 0.0;
          double scale = std::abs(want) + 1e-3;
          for (int t = 0; t < c.terms; ++t) {
            const double term = double{kernels().taken(a[e * a_size + row[i] + t])} *
                                kernels().taken(b[j * (c.terms + 2) + t]);
            want += term;
            scale += std::abs(term);
          }
          expect_near(got[at], want, scale, at);
        }
    const auto multiply = [&](const device::Product& with) {
      if (is_thin(with))
        run(kernels().thin, with);
      else
        run_tiled(kernels().product, with, c.columns);
    };
    expect_epilogues(p, got, live, multiply);
    if (kernels().precision != Precision::tf32) continue;
    // What was rounded where it was stored is multiplied as it lies.
    device::Product of_rounded = p;
    of_rounded.a.data = device(nearest_tf32(a));
    of_rounded.b.data = device(nearest_tf32(b));
    of_rounded.a.as = of_rounded.b.as = Precision::tf32;
    of_rounded.out = device(std::vector<float>(cells, kLoud));
    of_rounded.epilogue.stored_as = Precision::tf32;
    multiply(of_rounded);
    std::vector<float> want = got;
    for (float& v : want)
      if (v != kLoud) v = nearest_tf32(v);
    EXPECT_EQ(host(of_rounded.out, cells), want);
  }
}

/// x [capacity, positions, rows] and dy [capacity, positions, columns]; gradient of example e in
/// double.
struct GradientCase {
  int rows, columns, positions, capacity;
  unsigned count;
  int stripes;
};
const GradientCase kGradientCases[] = {{1, 1, 1, 1, 1, 1},     {70, 5, 9, 3, 2, 3},
                                       {20, 33, 1, 40, 37, 2}, {64, 64, 3, 6, 6, 4},
                                       {3, 20, 5, 4, 0, 1},    {130, 16, 17, 5, 100, 5}};

WeightGradient gradient_of(const GradientCase& c, const Batch& batch, const float* x,
                           const float* dy) {
  WeightGradient g{};
  g.batch = batch;
  g.x = {x, {nullptr, 0, 0, 1}, {nullptr, c.positions, c.positions * c.rows, c.rows}, false};
  // The right factor from the other side: neighbours in memory are terms.
  g.dy = {
      dy, {nullptr, 0, 0, c.positions}, {nullptr, c.positions, c.positions * c.columns, 1}, true};
  g.rows = c.rows;
  g.columns = c.columns;
  g.terms_per_example = c.positions;
  return g;
}

/// G(i, j) at j rows + i, then the bias.
std::vector<double> gradient_in_double(const ProductKernels& k, const GradientCase& c,
                                       const std::vector<float>& x, const std::vector<float>& dy,
                                       int e) {
  std::vector<double> g(static_cast<std::size_t>((c.rows + 1) * c.columns));
  for (int p = 0; p < c.positions; ++p)
    for (int j = 0; j < c.columns; ++j) {
      const double gradient = k.taken(dy[(e * c.columns + j) * c.positions + p]);
      for (int i = 0; i < c.rows; ++i)
        g[j * c.rows + i] += gradient * k.taken(x[(e * c.positions + p) * c.rows + i]);
      g[c.columns * c.rows + j] += gradient;
    }
  return g;
}

TEST_P(CudaProduct, WeightGradientNorms) {
  for (const GradientCase& c : kGradientCases) {
    const std::vector<float> x =
        normals(static_cast<std::size_t>(c.capacity) * c.positions * c.rows, 1);
    const std::vector<float> dy =
        normals(static_cast<std::size_t>(c.capacity) * c.positions * c.columns, 2);
    const int tiles = gradient_tiles(c.rows, c.columns);
    const auto cells = static_cast<std::size_t>(tiles) * c.capacity;
    const WeightGradientNorm a{gradient_of(c, batch(0, c.capacity, c.count), device(x), device(dy)),
                               device(std::vector<float>(cells, kLoud))};
    run_tiled(kernels().norm, a, c.columns);
    const std::vector<float> parts = host(a.parts, cells);
    for (int e = 0; e < c.capacity; ++e) {
      double got = 0.0;
      for (int t = 0; t < tiles; ++t) got += parts[t * c.capacity + e];
      if (e >= static_cast<int>(c.count)) {
        EXPECT_EQ(parts[e], kLoud);
        continue;
      }
      double want = 0.0;
      for (const double v : gradient_in_double(kernels(), c, x, dy, e)) want += v * v;
      expect_near(got, want, want, e);
    }
  }
}

TEST_P(CudaProduct, WeightGradientSumsSkipWhatIsClippedAway) {
  constexpr float kGrid = 0x1p-14f;
  for (const GradientCase& c : kGradientCases) {
    std::vector<float> x = normals(static_cast<std::size_t>(c.capacity) * c.positions * c.rows, 1);
    std::vector<float> dy =
        normals(static_cast<std::size_t>(c.capacity) * c.positions * c.columns, 2);
    std::vector<float> factors(static_cast<std::size_t>(2 * c.capacity), kLoud);
    for (int e = 0; e < c.capacity; ++e)
      factors[2 * e + 1] = e % 3 == 1 ? 0.0f : 0.25f + 0.1f * static_cast<float>(e);
    const auto poison = [&](std::vector<float>& v, int e) {
      v[e * (v.size() / c.capacity)] = kNan;
    };
    for (int e = 1; e < c.capacity; e += 3) e % 2 == 0 ? poison(x, e) : poison(dy, e);
    const auto d = static_cast<std::size_t>(c.columns) * (c.rows + 1);
    WeightGradientSum a{};
    a.gradient = gradient_of(c, batch(0, c.capacity, c.count), device(x), device(dy));
    a.factors = device(factors) + 1;
    a.factor_stride = 2;
    a.stripes = c.stripes;
    a.scale = device_scale(1.0f, static_cast<double>(kGrid));
    a.sum = device(std::vector<FixedPoint>(d, FixedPoint{7} << 14));
    run_tiled(kernels().sum, a, c.columns);
    const std::vector<FixedPoint> sum = host(a.sum, d);
    for (const int stripes : {1, c.capacity}) {
      WeightGradientSum b = a;
      b.stripes = stripes;
      b.sum = device(std::vector<FixedPoint>(d, FixedPoint{7} << 14));
      run_tiled(kernels().sum, b, c.columns);
      EXPECT_EQ(host(b.sum, d), sum) << stripes << " stripes";
    }
    std::vector<double> want(d, 7.0);
    std::vector<double> scale(d, 1.0);
    for (int e = 0; e < std::min<int>(c.capacity, static_cast<int>(c.count)); ++e) {
      if (factors[2 * e + 1] == 0.0f) continue;
      const std::vector<double> g = gradient_in_double(kernels(), c, x, dy, e);
      for (std::size_t j = 0; j < d; ++j) want[j] += factors[2 * e + 1] * g[j];
      for (std::size_t j = 0; j < d; ++j) scale[j] += std::abs(g[j]) + c.positions;
    }
    for (std::size_t j = 0; j < d; ++j) {
      const double got = static_cast<double>(static_cast<long long>(sum[j])) * kGrid;
      EXPECT_TRUE(std::abs(got - want[j]) <= 1e-5 * scale[j] + 0.5 * c.capacity * kGrid)
          << j << ": " << got << " for " << want[j];
    }

    // Single gradients: nothing is weighted or left out, NaN stays NaN in its own row.
    const auto cells = static_cast<std::size_t>(c.capacity) * (d + 3);
    const WeightGradientRows single{a.gradient, device(std::vector<float>(cells, kLoud)),
                                    static_cast<std::int64_t>(d) + 3};
    run_tiled(kernels().rows, single, c.columns);
    const std::vector<float> rows = host(single.gradients, cells);
    for (int e = 0; e < c.capacity; ++e) {
      const std::vector<double> g = gradient_in_double(kernels(), c, x, dy, e);
      for (std::size_t j = 0; j < d + 3; ++j) {
        const float got = rows[static_cast<std::size_t>(e) * (d + 3) + j];
        if (j >= d || e >= static_cast<int>(c.count))
          ASSERT_EQ(got, kLoud);
        else if (std::isnan(g[j]))
          ASSERT_TRUE(std::isnan(got));
        else
          expect_near(got, g[j], std::abs(g[j]) + c.positions, static_cast<int>(j));
      }
    }
  }
}

/// As many blocks as run at once, but not more than there are examples, and none with more examples
/// than 32 bits hold.
TEST(GradientStripes, FollowFromTheDevice) {
  const DeviceLimits limits{.multiprocessors = 132};
  EXPECT_EQ(gradient_stripes(1, 2612, 4, limits), 528) << "cifar-cnn's first convolution";
  EXPECT_EQ(gradient_stripes(16, 2612, 2, limits), 16);
  EXPECT_EQ(gradient_stripes(1, 448, 4, limits), 448);
  EXPECT_EQ(gradient_stripes(4096, 2612, 2, limits), 6) << "511 examples each";
  EXPECT_EQ(gradient_stripes(4096, 1, 2, limits), 1);
}

/// Sensitivity rests on this (see WeightGradientSum): what is added is the gradient that the norm
/// was taken of, also where its terms cancel and their rounding is as large as itself.
TEST_P(CudaProduct, WeighsTheGradientThatTheNormSaw) {
  const GradientCase c{30, 5, 50, 6, 6, 1};
  std::vector<float> x = normals(static_cast<std::size_t>(c.capacity) * c.positions * c.rows, 1);
  std::vector<float> dy =
      normals(static_cast<std::size_t>(c.capacity) * c.positions * c.columns, 2);
  for (int e = 0; e < c.capacity; ++e)
    for (int p = 0; p < c.positions; ++p) {
      for (int i = 0; i < c.rows; ++i) x[(e * c.positions + p) * c.rows + i] *= 1e-5f;
      for (int i = 0; i < c.rows; ++i) x[(e * c.positions + p) * c.rows + i] += 1.0f;
      for (int j = 0; j < c.columns; ++j) {
        float& v = dy[(e * c.columns + j) * c.positions + p];
        v = (p % 2 == 0 ? 1e3f : -1e3f) * static_cast<float>(1 + j);  // sums to zero over p
      }
    }
  std::vector<float> factors(static_cast<std::size_t>(c.capacity));
  for (int e = 0; e < c.capacity; ++e) factors[e] = 0.3f + 0.07f * static_cast<float>(e);
  const auto d = static_cast<std::size_t>(c.columns) * (c.rows + 1);
  const auto cells = d * static_cast<std::size_t>(c.capacity);
  const WeightGradient g = gradient_of(c, batch(0, c.capacity, c.count), device(x), device(dy));
  const WeightGradientRows single{g, device(std::vector<float>(cells, kLoud)),
                                  static_cast<std::int64_t>(d)};
  run_tiled(kernels().rows, single, c.columns);
  const std::vector<float> rows = host(single.gradients, cells);

  const WeightGradientNorm norm{g,
                                device(std::vector<float>(static_cast<std::size_t>(c.capacity)))};
  run_tiled(kernels().norm, norm, c.columns);
  const std::vector<float> parts = host(norm.parts, static_cast<std::size_t>(c.capacity));

  float largest = 0.0f;
  for (const float v : rows) largest = std::max(largest, std::abs(v));
  const auto grid = static_cast<float>(sum_grid(std::max(1e-3, static_cast<double>(largest))));
  WeightGradientSum sum{};
  sum.gradient = g;
  sum.factors = device(factors);
  sum.factor_stride = 1;
  sum.stripes = c.stripes;
  sum.sum = device(std::vector<FixedPoint>(d, 0));
  sum.scale = device_scale(1.0f, static_cast<double>(grid));
  run_tiled(kernels().sum, sum, c.columns);
  const std::vector<FixedPoint> added = host(sum.sum, d);

  for (int e = 0; e < c.capacity; ++e) {
    double square = 0;
    for (std::size_t j = 0; j < d; ++j) square += std::pow(static_cast<double>(rows[e * d + j]), 2);
    EXPECT_TRUE(std::abs(parts[e] - square) <= 1e-6 * square) << "example " << e;
  }
  for (std::size_t j = 0; j < d; ++j) {
    double want = 0;
    double size = 0;
    for (int e = 0; e < c.capacity; ++e) {
      const double v = static_cast<double>(factors[e]) * rows[e * d + j];
      want += v;
      size += std::abs(v);
    }
    const double got = static_cast<double>(static_cast<long long>(added[j])) * grid;
    EXPECT_TRUE(std::abs(got - want) <= 3 * 0x1p-24 * size + 0.5 * c.capacity * grid) << j;
  }
}

/// Examples whose terms cancel, one case each: x [positions, rows] and dy [columns, positions].
struct Cancelling {
  const char* name;
  std::vector<float> x, dy;
};
constexpr GradientCase kCancelling{40, 20, 49, 1, 1, 1};

/// dy is orthogonal to 1 and to x's one direction, but for what float32 rounds off: rounded to
/// TF32 the sums are a thousand times as long.
Cancelling orthogonal() {
  const GradientCase& c = kCancelling;
  const auto n = static_cast<std::size_t>(c.positions);
  const std::vector<float> direction = normals(n, 4);
  const std::vector<float> scale = normals(static_cast<std::size_t>(c.rows), 5);
  Cancelling s{"orthogonal", {}, {}};
  for (const float d : direction)
    for (const float f : scale) s.x.push_back(f * d);
  double mean = 0.0;
  double square = 0.0;
  for (const float d : direction) mean += d / static_cast<double>(n);
  for (const float d : direction) square += (d - mean) * (d - mean);
  for (int j = 0; j < c.columns; ++j) {
    const std::vector<float> v = normals(n, 6 + static_cast<unsigned>(j));
    double v_mean = 0.0;
    double along = 0.0;
    for (const float w : v) v_mean += w / static_cast<double>(n);
    for (std::size_t p = 0; p < n; ++p) along += v[p] * (direction[p] - mean) / square;
    for (std::size_t p = 0; p < n; ++p)
      s.dy.push_back(static_cast<float>(v[p] - v_mean - along * (direction[p] - mean)));
  }
  return s;
}

/// Whole numbers that TF32 holds, in threes s, t and -(s + t) that share their x: all sums are 0
/// but for a last term. Weighed before they are rounded again, the threes no longer cancel.
Cancelling threes() {
  const GradientCase& c = kCancelling;
  Cancelling s{"threes", {}, {}};
  std::mt19937 random(9);
  const auto whole = [&](int most) { return static_cast<float>(1 + random() % most); };
  for (int p = 0; p < c.positions; ++p)
    for (int i = 0; i < c.rows; ++i)
      s.x.push_back(p % 3 == 0 || p + 1 == c.positions ? whole(8) : s.x[(p - p % 3) * c.rows + i]);
  for (int j = 0; j < c.columns; ++j) {
    for (int p = 0; p + 1 < c.positions; p += 3) {
      const float a = whole(500);
      const float b = whole(500);
      for (const float v : {a, b, -(a + b)}) s.dy.push_back(v);
    }
    s.dy.push_back(0x1p-6f);
  }
  return s;
}

class CudaCancelling : public CudaProduct {
 protected:
  static constexpr float kClip = 1e-6f;

  WeightGradient gradient(const Cancelling& s, float factor = 1.0f) {
    std::vector<float> dy = s.dy;
    for (float& v : dy) v *= factor;
    return gradient_of(kCancelling, batch(0, 1, 1), device(s.x), device(dy));
  }
  /// The factor that clips an example to kClip by its norm.
  float factor(const ProductKernels& k, const WeightGradient& g) {
    const auto tiles = static_cast<std::size_t>(gradient_tiles(g.rows, g.columns));
    const WeightGradientNorm a{g, device(std::vector<float>(tiles, kLoud))};
    run_tiled(k.norm, a, g.columns);
    float square = 0.0f;
    for (const float part : host(a.parts, tiles)) square += part;
    float factor = 0.0f;
    clip_factors({Clipping::flat, kClip}, &square, 1, &factor);
    return factor;
  }
  /// The norm, in double, of what is added of the example.
  double added(const ProductKernels& k, const WeightGradient& g, float factor,
               double coarser = 1.0) {
    const auto grid = static_cast<float>(coarser * sum_grid(kClip));
    const auto d = static_cast<std::size_t>(g.columns) * (g.rows + 1);
    WeightGradientSum a{};
    a.gradient = g;
    a.factors = device(std::vector<float>{factor});
    a.factor_stride = 1;
    a.stripes = 1;
    a.sum = device(std::vector<FixedPoint>(d, 0));
    a.scale = device_scale(1.0f, static_cast<double>(grid));
    run_tiled(k.sum, a, g.columns);
    double square = 0.0;
    for (const FixedPoint v : host(a.sum, d))
      square += std::pow(static_cast<double>(static_cast<long long>(v)) * grid, 2);
    return std::sqrt(square);
  }
};

/// The norm's error and the rounding of the sum, as runtime/device/sensitivity.hpp counts them.
TEST_P(CudaCancelling, NoExampleAddsMoreThanTheClippingNorm) {
  for (const Cancelling& s : {orthogonal(), threes()}) {
    const WeightGradient g = gradient(s);
    const float f = factor(kernels(), g);
    EXPECT_LT(f, 0.5f) << s.name << ": not clipped";
    const double norm = added(kernels(), g, f);
    EXPECT_TRUE(norm <= kClip * (1.0 + 0x1p-13)) << s.name << ": " << norm;
    EXPECT_TRUE(norm >= kClip * (1.0 - 0x1p-13)) << s.name << ": " << norm;
  }
}
INSTANTIATE_TEST_SUITE_P(All, CudaCancelling, testing::Values(&kFloatKernels, &kTensorKernels),
                         [](const auto& info) {
                           return info.param->precision == Precision::tf32 ? "tf32" : "fp32";
                         });

/// What these examples are for: two ways to take TF32 that look as good break the bound.
class CudaCancellingNaively : public CudaCancelling {};
TEST_F(CudaCancellingNaively, ANormInFloatIsNotThatOfTensorCores) {
  const WeightGradient g = gradient(orthogonal());
  EXPECT_GT(added(kTensorKernels, g, factor(kFloatKernels, g), 1024.0), 100.0 * kClip);
}
TEST_F(CudaCancellingNaively, WeighingBeforeRoundingAddsAnotherGradient) {
  const Cancelling s = threes();
  const float f = factor(kTensorKernels, gradient(s));
  EXPECT_GT(added(kTensorKernels, gradient(s, f), 1.0f, 1024.0), 10.0 * kClip);
}

/// What an example comes to must not depend on which micro-batch it is in, where, or how large
/// that is: neighbouring data sets differ in one example's share of the sum only if it does not.
TEST_P(CudaProduct, IsTheSameInEveryTileAndPlace) {
  constexpr int kTermCount = 100, kColumns = 40, kExamples = 150, kShift = 5;
  const std::vector<float> a = normals(std::size_t{kTermCount} * (kExamples + kShift), 1);
  const std::vector<float> b = normals(std::size_t{kTermCount} * kColumns, 2);
  const float* const b_at = device(b);
  const float* const a_at = device(a);
  const auto product = [&](void (*kernel)(device::Product), int rows, int columns, int shift) {
    device::Product p{};
    p.batch = batch(0, kExamples, kExamples);
    p.a = {a_at + std::ptrdiff_t{kTermCount} * shift, {nullptr, 0, 0, kTermCount}, {}, true};
    p.b = {b_at, {nullptr, 0, 0, kTermCount}, {}, true};
    p.out = device(std::vector<float>(std::size_t{kExamples} * kColumns, kLoud));
    p.out_row = {nullptr, 0, 0, kColumns};
    p.rows_per_example = 1;
    p.terms = kTermCount;
    p.columns = kColumns;
    this->launch(kernel, p,
                 {.grid = {divide_up(kExamples, rows), divide_up(kColumns, columns)},
                  .block = {tile_threads(columns)},
                  .shared_bytes = 0});
    return host(p.out, std::size_t{kExamples} * kColumns);
  };
  const int rows = kernels().tile_rows(64);
  const std::vector<float> want = product(kernels().product[2], rows, 64, 0);
  EXPECT_EQ(product(kernels().product[0], kTileRows, 16, 0), want);
  EXPECT_EQ(product(kernels().product[1], rows, 32, 0), want);
  EXPECT_EQ(product(kernels().thin, kTileRows, kThinColumns, 0), want);
  const std::vector<float> moved = product(kernels().product[2], rows, 64, kShift);
  for (int i = 0; i < (kExamples - kShift) * kColumns; ++i)
    ASSERT_EQ(moved[i], want[i + kShift * kColumns]) << i;
}

}  // namespace
}  // namespace cudp
