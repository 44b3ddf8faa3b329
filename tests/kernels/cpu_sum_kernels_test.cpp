// The CPU's kernels of products and sums.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/fixed_point.hpp"
#include "tests/kernels/cpu_kernel_fixture.hpp"

namespace cudp {
namespace {

using CpuSumKernel = CpuKernel;

// --- Gathered products ---

struct GemmCase {
  int rows, terms, columns;
};
/// No rows, no terms, single ones, and tails of each width and height of a tile; 800 terms are more
/// than a block of them.
const std::vector<GemmCase> kProducts = {{0, 3, 16},   {1, 0, 16},   {1, 1, 16},    {7, 5, 48},
                                         {15, 33, 80}, {29, 3, 112}, {7, 800, 112}, {13, 2, 64}};

struct GemmTables {
  explicit GemmTables(const GemmCase& c) : out_stride(c.columns + 7) {
    for (int m = 0; m < c.rows; ++m) {
      a_row.push_back(3 * m + 1);
      out_row.push_back((c.rows - 1 - m) * out_stride + 2);
    }
    for (int t = 0; t < c.terms; ++t) {
      a_step.push_back((t * 5) % (c.terms + 2));
      b_step.push_back(((t * 3) % c.terms) * (c.columns + 1));
      step.push_back({a_step.back(), b_step.back()});
    }
    for (int b = 0; b < c.columns / 16; ++b) out_block.push_back(16 * (c.columns / 16 - 1 - b));
  }
  int out_stride;
  std::vector<std::int32_t> a_row, out_row, a_step, b_step, out_block;
  std::vector<GemmStep> step;
};

TEST_P(CpuSumKernel, GatheredProducts) {
  for (const GemmCase& c : kProducts)
    for (const GemmStart start : {GemmStart::zero, GemmStart::bias, GemmStart::out})
      for (const bool blocks : {false, true})
        for (const bool with_nan : {false, true}) {
          const GemmTables t(c);
          std::vector<float> a = normals(3 * c.rows + c.terms + 3);
          const std::vector<float> b = normals(std::int64_t{c.terms + 1} * (c.columns + 1));
          const std::vector<float> bias = normals(c.columns);
          const bool nan = with_nan && c.rows > 4 && c.terms > 0;
          if (nan) a[t.a_row[4] + t.a_step[0]] = kNan;
          std::vector<float> was = normals(std::int64_t{c.rows} * t.out_stride + 2);
          std::vector<bool> written(was.size());
          Guarded<float> out(was);
          kernels().gather_gemm({.a = a.data(),
                                 .b = b.data(),
                                 .out = out.data(),
                                 .a_row = t.a_row.data(),
                                 .out_row = t.out_row.data(),
                                 .out_block = blocks ? t.out_block.data() : nullptr,
                                 .step = t.step.data(),
                                 .bias = start == GemmStart::bias ? bias.data() : nullptr,
                                 .rows = c.rows,
                                 .terms = c.terms,
                                 .columns = c.columns,
                                 .start = start});
          for (int m = 0; m < c.rows; ++m) {
            const auto row = static_cast<std::size_t>(m);
            bool reads_nan = false;
            for (int s = 0; s < c.terms; ++s)
              reads_nan |= std::isnan(a[t.a_row[row] + t.a_step[s]]);
            for (int n = 0; n < c.columns; ++n) {
              const int column =
                  blocks ? t.out_block[static_cast<std::size_t>(n / 16)] + n % 16 : n;
              const std::size_t at = t.out_row[row] + column;
              written[at] = true;
              if (reads_nan) {
                EXPECT_TRUE(std::isnan(out[static_cast<std::int64_t>(at)]));
                continue;
              }
              double want = 0.0;
              if (start == GemmStart::bias) want = static_cast<double>(bias[n]);
              if (start == GemmStart::out) want = static_cast<double>(was[at]);
              double size = std::abs(want);
              for (std::size_t s = 0; s < t.step.size(); ++s) {
                const double term = static_cast<double>(a[t.a_row[row] + t.a_step[s]]) *
                                    static_cast<double>(b[t.b_step[s] + n]);
                want += term;
                size += std::abs(term);
              }
              expect_near(static_cast<double>(out[static_cast<std::int64_t>(at)]), want, size,
                          "row " + std::to_string(m) + ", column " + std::to_string(n));
            }
          }
          for (std::size_t i = 0; i < was.size(); ++i)
            if (!written[i]) {
              EXPECT_EQ(out[static_cast<std::int64_t>(i)], was[i]) << i;
            }
        }
}

TEST_P(CpuSumKernel, GatheredProductsShareAPlace) {
  constexpr int kColumns = 32;
  const std::vector<float> a{1.0f, 10.0f, 100.0f};
  const std::vector<float> b(kColumns, 2.0f);
  const std::vector<std::int32_t> a_row{0, 1, 2}, out_row{0, 0, 0};
  const GemmStep step{0, 0};
  std::vector<float> out(kColumns, 5.0f);
  kernels().gather_gemm({.a = a.data(),
                         .b = b.data(),
                         .out = out.data(),
                         .a_row = a_row.data(),
                         .out_row = out_row.data(),
                         .out_block = nullptr,
                         .step = &step,
                         .bias = nullptr,
                         .rows = 3,
                         .terms = 1,
                         .columns = kColumns,
                         .start = GemmStart::out});
  EXPECT_EQ(out, std::vector<float>(kColumns, 227.0f));
}

TEST_P(CpuSumKernel, ColumnSums) {
  for (const int terms : {0, 1, 2, 7})
    for (const int columns : {16, 48}) {
      const std::vector<float> b = normals(std::int64_t{terms + 1} * (columns + 3));
      std::vector<GemmStep> step;
      step.reserve(static_cast<std::size_t>(terms));
      for (int t = 0; t < terms; ++t) step.push_back({-1, (terms - t) * (columns + 3)});
      Guarded<float> out(columns, kLoud);
      kernels().column_sum({.b = b.data(),
                            .step = step.data(),
                            .terms = terms,
                            .columns = columns,
                            .out = out.data()});
      for (int n = 0; n < columns; ++n) {
        double want = 0.0;
        for (const GemmStep& s : step) want += static_cast<double>(b[s.b + n]);
        expect_near(static_cast<double>(out[n]), want, 4.0 * terms, "column sum");
      }
    }
}

// --- Clipped sums ---

/// Numbers of elements: none, one vector, pairs and tails of them, more than a block of squares.
constexpr int kSizes[] = {0, 16, 48, 1024, 1040, 3088};

TEST_P(CpuSumKernel, AddScaled) {
  for (const int n : kSizes) {
    const std::vector<float> g = normals(n), was = normals(n);
    Guarded<float> acc(was);
    kernels().add_scaled({.acc = acc.data(), .g = g.data(), .factor = -0.75f, .n = n});
    for (int i = 0; i < n; ++i)
      expect_near(static_cast<double>(acc[i]),
                  static_cast<double>(was[i]) - 0.75 * static_cast<double>(g[i]), 4.0, "sum");
  }
}

/// w = (g - mean) inverse, or g.
double transformed(const std::vector<float>& g, const std::vector<float>& mean,
                   const std::vector<float>& inverse, std::size_t i, bool with) {
  const auto x = static_cast<double>(g[i]);
  return with ? (x - static_cast<double>(mean[i])) * static_cast<double>(inverse[i]) : x;
}

TEST_P(CpuSumKernel, AddRoundedIsWithinHalfAUnit) {
  for (const int n : kSizes)
    for (const bool with : {false, true}) {
      const std::vector<float> g = normals(n), mean = normals(n), inverse = normals(n);
      Guarded<std::int32_t> units(n, 1000);
      kernels().add_rounded(
          {.units = units.data(),
           .g = g.data(),
           .scale = 0x1p10f,
           .n = n,
           .transform = with ? Transform{mean.data(), inverse.data()} : Transform{}});
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
        const double want = 0x1p10 * transformed(g, mean, inverse, i, with);
        const double got = units[static_cast<std::int64_t>(i)] - 1000;
        EXPECT_TRUE(std::abs(got - want) <= 0.5 + 1e-6 * std::abs(want) + 1e-2) << got << want;
      }
    }
}

TEST_P(CpuSumKernel, SquareSums) {
  for (const int n : kSizes) {
    const std::vector<float> g = normals(n), mean = normals(n), inverse = normals(n);
    double plain = 0.0, of_transformed = 0.0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      plain += std::pow(transformed(g, mean, inverse, i, false), 2);
      of_transformed += std::pow(transformed(g, mean, inverse, i, true), 2);
    }
    const CpuKernels& k = kernels();
    expect_near(static_cast<double>(k.square_sum(g.data(), n)), plain, plain, "squares");
    expect_near(
        static_cast<double>(k.transformed_square_sum(g.data(), {mean.data(), inverse.data()}, n)),
        of_transformed, of_transformed, "squares of transformed numbers");
    Guarded<float> y(n, kLoud);
    k.square_numbers(g.data(), y.data(), n);
    for (int i = 0; i < n; ++i) EXPECT_EQ(y[i], g[i] * g[i]);
    if (n == 0) continue;
    std::vector<float> bad = g;
    bad.back() = kNan;
    EXPECT_TRUE(std::isnan(k.square_sum(bad.data(), n)));
    bad.back() = 1e30f;
    EXPECT_FALSE(std::isfinite(k.square_sum(bad.data(), n)));
  }
}

TEST_P(CpuSumKernel, TransformedDenseSums) {
  for (const int n : {0, 16, 80}) {
    const std::vector<float> dy = normals(n), u = normals(n), v = normals(n);
    double squares = 0.0, products = 0.0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      const auto g = static_cast<double>(dy[i]);
      squares += g * g * static_cast<double>(u[i]);
      products += g * static_cast<double>(v[i]);
    }
    const TransformedDenseSums got =
        kernels().transformed_dense({.dy = dy.data(), .u = u.data(), .v = v.data(), .n = n});
    EXPECT_TRUE(std::abs(got.squares - squares) <= 1e-12 * (1.0 + n));
    EXPECT_TRUE(std::abs(got.products - products) <= 1e-12 * (1.0 + n));
  }
}

TEST_P(CpuSumKernel, UnitsFlushAndAddUp) {
  for (const int n : {0, 16, 48}) {
    constexpr int kCount = 3;
    std::vector<std::vector<std::int64_t>> totals(kCount);
    std::vector<std::vector<std::int32_t>> units(kCount);
    std::vector<std::int64_t*> total_of;
    std::vector<std::int32_t*> units_of;
    std::vector<std::uint64_t> want(static_cast<std::size_t>(n));
    for (int k = 0; k < kCount; ++k) {
      for (int i = 0; i < n; ++i) {
        // The sum of the totals goes round 2^64.
        totals[k].push_back((std::int64_t{1} << 62) - std::int64_t{i} * (k + 1));
        units[k].push_back(i % 2 == 0 ? (1 << 30) + i : -(1 << 30) - k);
        want[i] += static_cast<std::uint64_t>(totals[k][i]) +
                   static_cast<std::uint64_t>(static_cast<std::int64_t>(units[k][i]));
      }
      total_of.push_back(totals[k].data());
      units_of.push_back(units[k].data());
    }
    std::vector<std::int64_t> flushed = totals[0];
    std::vector<std::int32_t> from = units[0];
    kernels().flush_units(from.data(), flushed.data(), n);
    for (int i = 0; i < n; ++i) EXPECT_EQ(flushed[i], totals[0][i] + units[0][i]);
    EXPECT_EQ(from, std::vector<std::int32_t>(static_cast<std::size_t>(n), 0));

    Guarded<std::int64_t> out(n, 7);
    kernels().sum_units({.totals = total_of.data(),
                         .units = units_of.data(),
                         .count = kCount,
                         .out = out.data(),
                         .n = n});
    for (int i = 0; i < n; ++i) EXPECT_EQ(out[i], static_cast<std::int64_t>(want[i]));
    for (int k = 0; k < kCount; ++k) {
      EXPECT_EQ(totals[k], std::vector<std::int64_t>(static_cast<std::size_t>(n), 0));
      EXPECT_EQ(units[k], std::vector<std::int32_t>(static_cast<std::size_t>(n), 0));
    }
  }
}

TEST_P(CpuSumKernel, OuterProductsAreRoundedTermByTerm) {
  for (const GemmCase& c : {GemmCase{0, 3, 16}, GemmCase{3, 0, 16}, GemmCase{1, 1, 16},
                            GemmCase{7, 5, 48}, GemmCase{13, 9, 80}, GemmCase{25, 4, 112}})
    for (const bool with : {false, true}) {
      std::vector<float> x = normals(std::int64_t{3} * c.rows + std::int64_t{40} * c.terms + 1);
      const std::vector<float> y = normals(std::int64_t{c.terms + 1} * (c.columns + 16));
      const std::int64_t n = std::int64_t{c.rows} * c.columns;
      const std::vector<float> mean = normals(n), inverse = normals(n), scale = normals(c.terms);
      std::vector<std::int32_t> x_row;
      x_row.reserve(static_cast<std::size_t>(c.rows));
      for (int m = 0; m < c.rows; ++m) x_row.push_back(3 * m);
      std::vector<GemmStep> step;
      step.reserve(static_cast<std::size_t>(c.terms));
      for (int t = 0; t < c.terms; ++t) step.push_back({40 * t, t * (c.columns + 16)});
      std::vector<float> large_y = y;
      for (float& v : large_y) v *= 1000.0f;
      Guarded<std::int32_t> units(n, -5);
      kernels().add_outer({.x = x.data(),
                           .y = large_y.data(),
                           .units = units.data(),
                           .x_row = x_row.data(),
                           .step = step.data(),
                           .rows = c.rows,
                           .terms = c.terms,
                           .columns = c.columns,
                           .transform = with ? Transform{mean.data(), inverse.data()} : Transform{},
                           .scale = with ? scale.data() : nullptr});
      for (int m = 0; m < c.rows; ++m)
        for (int k = 0; k < c.columns; ++k) {
          const std::int64_t at = std::int64_t{m} * c.columns + k;
          double want = -5.0, slack = 0.0;
          for (std::size_t t = 0; t < step.size(); ++t) {
            double term = static_cast<double>(x[x_row[m] + step[t].a]) *
                          static_cast<double>(large_y[step[t].b + k]);
            double size = std::abs(term);
            if (with) {
              const auto j = static_cast<std::size_t>(at);
              const double factor = static_cast<double>(inverse[j]) * static_cast<double>(scale[t]);
              size = (size + std::abs(static_cast<double>(mean[j]))) * std::abs(factor);
              term = (term - static_cast<double>(mean[j])) * factor;
            }
            want += term;
            slack += 0.5 + 1e-6 * size;
          }
          EXPECT_TRUE(std::abs(units[at] - want) <= slack)
              << units[at] << ", expected " << want << " within " << slack;
        }
    }
}

TEST_P(CpuSumKernel, OuterProductsOfFewOutputsAreThoseOfMany) {
  constexpr int kColumns = 16, kRows = 147, kTerms = 5;
  constexpr std::int64_t kNumbers = std::int64_t{kRows} * kColumns;
  for (const int outputs : {1, 2, 3, 4, 5})
    for (const int apart : {1, 2}) {
      const std::vector<float> x = normals(std::int64_t{kTerms} * 3 * kRows);
      std::vector<float> y = normals(std::int64_t{kTerms} * kColumns);
      std::vector<std::int32_t> x_row;
      x_row.reserve(kRows);
      std::vector<GemmStep> step;
      for (int m = 0; m < kRows; ++m) x_row.push_back(apart * m + 3);
      for (int t = 0; t < kTerms; ++t) {
        step.push_back({(kTerms - 1 - t) * 2 * kRows, t * kColumns});
        for (int c = 0; c < kColumns; ++c) y[t * kColumns + c] *= c < outputs ? 1000.0f : 0.0f;
      }
      Guarded<std::int32_t> units(kNumbers, -5), want(kNumbers, -5);
      AddOuter a{.x = x.data(),
                 .y = y.data(),
                 .units = want.data(),
                 .x_row = x_row.data(),
                 .step = step.data(),
                 .rows = kRows,
                 .terms = kTerms,
                 .columns = kColumns};
      kernels().add_outer(a);
      a.units = units.data();
      a.outputs = outputs;
      kernels().add_outer(a);
      EXPECT_EQ(units.values(), want.values()) << outputs << " outputs, inputs " << apart;
    }
}

// --- Principal components ---

TEST_P(CpuSumKernel, SecondMomentsAreExact) {
  for (const int count : {0, 1, 7})
    for (const int stride : {32, 96})
      for (const auto& [begin, end] : {std::pair{0, stride}, std::pair{4, 12}, std::pair{28, 32}}) {
        std::vector<double> rows;
        for (const float v : normals(std::int64_t{count} * stride))
          rows.push_back(std::round(0x1p20 * static_cast<double>(v)));
        Guarded<double> sum(std::int64_t{stride} * stride, 3.0);
        kernels().second_moments({.rows = rows.data(),
                                  .count = count,
                                  .stride = stride,
                                  .begin = begin,
                                  .end = end,
                                  .sum = sum.data()});
        for (int i = 0; i < stride; ++i)
          for (int j = 0; j < stride; ++j) {
            double want = 3.0;
            if (i >= begin && i < end && j >= i / kColumnTile * kColumnTile)
              for (int r = 0; r < count; ++r) want += rows[r * stride + i] * rows[r * stride + j];
            EXPECT_EQ(sum[std::int64_t{i} * stride + j], want) << i << " " << j;
          }
      }
}

TEST_P(CpuSumKernel, ProjectRow) {
  for (const int inputs : {0, 1, 7})
    for (const int outputs : {16, 48}) {
      const std::vector<float> x = normals(inputs);
      const std::vector<float> directions = normals(std::int64_t{inputs} * outputs);
      Guarded<float> out(outputs, kLoud);
      kernels().project_row({.x = x.data(),
                             .directions = directions.data(),
                             .inputs = inputs,
                             .outputs = outputs,
                             .out = out.data()});
      for (int k = 0; k < outputs; ++k) {
        double want = 0.0;
        for (int i = 0; i < inputs; ++i)
          want += static_cast<double>(x[static_cast<std::size_t>(i)]) *
                  static_cast<double>(directions[i * outputs + k]);
        expect_near(static_cast<double>(out[k]), want, 16.0, "projection");
      }
    }
}

// --- Linear models ---

struct LinearSize {
  std::int64_t tiles;
  int d;
};

/// -log of the likelihood, or the hinge, at a margin; and its derivative.
double margin_loss(Loss loss, double m) {
  return loss == Loss::hinge ? std::max(0.0, 1.0 - m)
                             : std::log1p(std::exp(-std::abs(m))) + std::max(-m, 0.0);
}
double margin_derivative(Loss loss, double m) {
  if (loss == Loss::hinge) return m < 1.0 ? -1.0 : 0.0;
  return -1.0 / (1.0 + std::exp(m));
}

TEST_P(CpuSumKernel, LinearScoresGradientsAndLosses) {
  for (const LinearSize c :
       {LinearSize{0, 3}, LinearSize{1, 1}, LinearSize{3, 6}, LinearSize{70, 5}})
    for (const Loss loss : {Loss::logistic, Loss::hinge}) {
      const std::int64_t n = c.tiles * kTile;
      const std::vector<float> features = normals(n * c.d), w = normals(c.d);
      const auto feature = [&](std::int64_t i, int j) {
        return static_cast<double>(
            features[static_cast<std::size_t>((i / kTile * c.d + j) * kTile + i % kTile)]);
      };
      std::vector<float> signs, norms;
      for (std::int64_t i = 0; i < n; ++i) {
        signs.push_back(i % 7 == 3 ? 0.0f : i % 2 == 0 ? 1.0f : -1.0f);
        double square = 0.0;
        for (int j = 0; j < c.d; ++j) square += std::pow(feature(i, j), 2);
        norms.push_back(static_cast<float>(std::sqrt(square) * (1.0 + 1e-6)));
      }
      Guarded<float> scores(n, kLoud);
      // The first and the last tile are left to others.
      const std::int64_t begin = c.tiles > 2 ? 1 : 0, end = c.tiles > 2 ? c.tiles - 1 : c.tiles;
      kernels().linear_scores({.features = features.data(),
                               .w = w.data(),
                               .scores = scores.data(),
                               .begin = begin,
                               .end = end,
                               .d = c.d});
      std::vector<double> want_scores(static_cast<std::size_t>(n));
      for (std::int64_t i = 0; i < n; ++i) {
        for (int j = 0; j < c.d; ++j)
          want_scores[static_cast<std::size_t>(i)] +=
              feature(i, j) * static_cast<double>(w[static_cast<std::size_t>(j)]);
        const bool inside = i >= begin * kTile && i < end * kTile;
        if (inside)
          expect_near(static_cast<double>(scores[i]), want_scores[static_cast<std::size_t>(i)],
                      16.0, "score");
        else
          EXPECT_EQ(scores[i], kLoud);
      }
      if (end > begin) scores[begin * kTile] = kNan;

      constexpr float kMaxNorm = 0.5f;
      Guarded<double> total(std::int64_t{c.d} * kTile, 0.0);
      kernels().linear_gradient({.features = features.data(),
                                 .scores = scores.data(),
                                 .signs = signs.data(),
                                 .norms = norms.data(),
                                 .total = total.data(),
                                 .begin = begin,
                                 .end = end,
                                 .d = c.d,
                                 .loss = loss,
                                 .clip_norm = kMaxNorm,
                                 .inverse_grid = 0x1p20});
      for (int j = 0; j < c.d; ++j)
        for (int lane = 0; lane < kTile; ++lane) {
          double want = 0.0, count = 0.0;
          for (std::int64_t t = begin; t < end; ++t) {
            const std::int64_t i = t * kTile + lane;
            const auto at = static_cast<std::size_t>(i);
            const auto sign = static_cast<double>(signs[at]);
            count += 1.0;
            if (sign == 0.0 || std::isnan(scores[i])) continue;
            const double g = sign * margin_derivative(loss, sign * want_scores[at]);
            const double largest = static_cast<double>(kMaxNorm / norms[at]);
            want += std::clamp(g, -largest, largest) * feature(i, j);
          }
          const double got = total[std::int64_t{j} * kTile + lane];
          EXPECT_EQ(got, std::round(got)) << "a whole number of units";
          EXPECT_TRUE(std::abs(got * 0x1p-20 - want) <= count * (0x1p-21 + 4e-6))
              << got * 0x1p-20 << ", expected " << want;
        }

      const std::vector<float> along = normals(n), steps{0.0f, 0.5f, -2.0f};
      for (const float max_loss : {0.7f, std::numeric_limits<float>::infinity()}) {
        if (end > begin && !std::isfinite(max_loss)) scores[begin * kTile] = 0.25f;
        Guarded<double> losses(std::int64_t{3} * kTile, 0.0);
        kernels().linear_losses({.scores = scores.data(),
                                 .along = along.data(),
                                 .signs = signs.data(),
                                 .steps = steps.data(),
                                 .total = losses.data(),
                                 .begin = begin,
                                 .end = end,
                                 .count = 3,
                                 .loss = loss,
                                 .max_loss = max_loss,
                                 .inverse_grid = 0x1p16});
        for (std::size_t k = 0; k < steps.size(); ++k)
          for (int lane = 0; lane < kTile; ++lane) {
            double want = 0.0, count = 0.0;
            for (std::int64_t t = begin; t < end; ++t) {
              const std::int64_t i = t * kTile + lane;
              const auto at = static_cast<std::size_t>(i);
              const auto sign = static_cast<double>(signs[at]);
              count += 1.0;
              if (sign == 0.0) continue;
              const double score = static_cast<double>(scores[i]) -
                                   static_cast<double>(steps[k]) * static_cast<double>(along[at]);
              // NaN counts as the largest loss.
              const double largest = static_cast<double>(max_loss);
              want +=
                  std::isnan(score) ? largest : std::fmin(margin_loss(loss, sign * score), largest);
            }
            const double got = losses[static_cast<std::int64_t>(k) * kTile + lane];
            EXPECT_TRUE(std::abs(got * 0x1p-16 - want) <= count * (0x1p-17 + 1e-5))
                << got * 0x1p-16 << ", expected " << want;
          }
      }
    }
}

INSTANTIATE_TEST_SUITE_P(All, CpuSumKernel,
                         testing::Values(SimdLevel::baseline, SimdLevel::avx2, SimdLevel::avx512),
                         [](const auto& i) { return std::string(simd_name(i.param)); });

}  // namespace
}  // namespace cudp
