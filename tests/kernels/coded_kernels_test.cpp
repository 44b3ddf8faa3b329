// The CPU's kernels that read rows of a table by their codes, and the linear model on either kind
// of row, at every SIMD level, against plain loops in double over the dense rows.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/common/fixed_point.hpp"
#include "tests/kernels/cpu_kernel_fixture.hpp"

namespace cudp {
namespace {

using CpuCodedKernel = CpuKernel;

/// Rows with a loud byte behind each record's last code, and the dense rows that they stand for.
struct Table {
  Table(int numbers, int codes, int features, int n, unsigned seed = 1) : features(features), n(n) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    // Numbers lie among the groups of codes: every third feature, as long as there are any.
    std::vector<int> free;
    for (int j = 0; j < features; ++j)
      if (j % 3 == 1 && static_cast<int>(number_feature.size()) < numbers)
        number_feature.push_back(j);
      else
        free.push_back(j);
    code_bytes = bytes_of_code(features);
    row_bytes = coded_row_bytes(numbers, codes, code_bytes);
    bytes.assign(static_cast<std::size_t>(row_bytes) * static_cast<std::size_t>(n), 0xff);
    dense.assign(static_cast<std::size_t>(features) * static_cast<std::size_t>(n), 0.0f);
    for (int i = 0; i < n; ++i) {
      double square = 0.0;
      for (int k = 0; k < numbers; ++k) {
        const float x = normal(random);
        set_number(i, k, x);
        x_of(i, number_feature[static_cast<std::size_t>(k)]) = x;
        square += static_cast<double>(x) * static_cast<double>(x);
      }
      const int width = codes > 0 ? static_cast<int>(free.size()) / codes : 0;
      for (int k = 0; k < codes; ++k) {
        const bool missing = random() % 5 == 0;
        const int at = k * width + static_cast<int>(random() % static_cast<unsigned>(width));
        const int code = missing ? features : free[static_cast<std::size_t>(at)];
        const int place = 4 * (numbers + 1) + code_bytes * k;
        std::memcpy(row(i) + place, &code, static_cast<std::size_t>(code_bytes));
        if (missing) continue;
        x_of(i, code) = 1.0f;
        square += 1.0;
      }
      set_number(i, numbers, static_cast<float>(square));
      labels.push_back(static_cast<std::uint8_t>(random() % 2));
    }
  }

  CodedRows view() const {
    return {.rows = bytes.data(),
            .number_feature = number_feature.data(),
            .row_bytes = row_bytes,
            .numbers = static_cast<int>(number_feature.size()),
            .codes = static_cast<int>((row_bytes - std::int64_t{4} * (numbers() + 1)) / code_bytes),
            .code_bytes = code_bytes,
            .features = features};
  }
  CodedRows view(int codes) const {
    CodedRows v = view();
    v.codes = codes;
    return v;
  }
  int numbers() const { return static_cast<int>(number_feature.size()); }
  std::uint8_t* row(int i) { return bytes.data() + row_bytes * i; }
  /// Behind the numbers stands |x|^2.
  void set_number(int i, int k, float x) {
    std::memcpy(row(i) + std::ptrdiff_t{4} * k, &x, sizeof x);
  }
  float& x_of(int i, int j) {
    return dense[static_cast<std::size_t>(i) * static_cast<std::size_t>(features) +
                 static_cast<std::size_t>(j)];
  }
  double x(std::uint32_t i, int j) const {
    return static_cast<double>(
        dense[static_cast<std::size_t>(i) * static_cast<std::size_t>(features) +
              static_cast<std::size_t>(j)]);
  }

  int features;
  int n;
  int code_bytes = 1;
  std::int64_t row_bytes = 0;
  std::vector<std::int32_t> number_feature;
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint8_t> labels;
  std::vector<float> dense;
};

struct Widths {
  int numbers, codes, features;
};
/// No codes, no numbers, more of each than a kernel takes at a time, and codes of 1, 2 and 4 bytes.
constexpr Widths kTables[] = {{6, 8, 124},   {0, 5, 30},   {3, 0, 9},   {1, 1, 4},    {9, 3, 40},
                              {35, 11, 255}, {17, 6, 300}, {5, 40, 90}, {2, 4, 70000}};

/// Every other row, backwards.
std::vector<std::uint32_t> every_other(int count) {
  std::vector<std::uint32_t> v;
  v.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) v.push_back(static_cast<std::uint32_t>(2 * (count - i) - 1));
  return v;
}

TEST_P(CpuCodedKernel, Products) {
  for (const Widths& t : kTables)
    for (const int count : {0, 1, 5, 67})
      for (const int columns : {16, 48, 160, 208}) {
        if ((t.features > 1000 || count > 5) && columns > 16) continue;
        const Table table(t.numbers, t.codes, t.features, 2 * count + 1);
        const std::vector<std::uint32_t> examples = every_other(count);
        const std::vector<float> weights = normals(std::int64_t{t.features} * columns);
        const std::vector<float> bias = normals(columns);
        const int stride = columns + 5;
        Guarded<float> out(std::int64_t{count} * stride, kLoud);
        kernels().coded_product({.rows = table.view(t.codes),
                                 .examples = examples.data(),
                                 .weights = weights.data(),
                                 .bias = bias.data(),
                                 .out = out.data(),
                                 .out_stride = stride,
                                 .count = count,
                                 .columns = columns});
        for (int e = 0; e < count; ++e)
          for (int c = 0; c < stride; ++c) {
            const std::int64_t at = std::int64_t{e} * stride + c;
            if (c >= columns) {
              EXPECT_EQ(out[at], kLoud);
              continue;
            }
            double want = static_cast<double>(bias[static_cast<std::size_t>(c)]);
            double size = std::abs(want);
            for (int j = 0; j < t.features; ++j) {
              const double term =
                  table.x(examples[static_cast<std::size_t>(e)], j) *
                  static_cast<double>(
                      weights[static_cast<std::size_t>(j) * static_cast<std::size_t>(columns) +
                              static_cast<std::size_t>(c)]);
              want += term;
              size += std::abs(term);
            }
            expect_near(static_cast<double>(out[at]), want, size, "coded product");
          }
      }
}

/// The path for a layer of one output adds the same summands in the same order as that for many.
TEST_P(CpuCodedKernel, ProductsOfOneOutputAreThoseOfManyBitForBit) {
  constexpr int kColumns = 16, kStride = kColumns + 5, kCount = 67;
  for (const Widths& t : kTables) {
    const Table table(t.numbers, t.codes, t.features, 2 * kCount + 1);
    const std::vector<std::uint32_t> examples = every_other(kCount);
    std::vector<float> weights(static_cast<std::size_t>(t.features) * kColumns);
    const std::vector<float> first = normals(t.features);
    for (std::size_t j = 0; j < first.size(); ++j) weights[j * kColumns] = first[j];
    std::vector<float> bias(kColumns);
    bias[0] = 0.3f;
    Guarded<float> many(std::int64_t{kCount} * kStride, kLoud);
    Guarded<float> one(std::int64_t{kCount} * kStride, kLoud);
    CodedProduct args{.rows = table.view(t.codes),
                      .examples = examples.data(),
                      .weights = weights.data(),
                      .bias = bias.data(),
                      .out = many.data(),
                      .out_stride = kStride,
                      .count = kCount,
                      .columns = kColumns};
    kernels().coded_product(args);
    args.out = one.data();
    args.has_one_output = true;
    kernels().coded_product(args);
    for (std::int64_t at = 0; at < std::int64_t{kCount} * kStride; ++at)
      EXPECT_EQ(std::bit_cast<std::uint32_t>(one[at]), std::bit_cast<std::uint32_t>(many[at]))
          << t.numbers << " numbers, " << t.codes << " codes, at " << at;
  }
}

TEST_P(CpuCodedKernel, OuterProductsAddTheUnitsOfTheDenseRows) {
  for (const Widths& t : kTables)
    for (const int terms : {0, 1, 5, 131})
      for (const int columns : {16, 48, 80, 160}) {
        if ((t.features > 1000 || terms > 5) && columns > 16) continue;
        const Table table(t.numbers, t.codes, t.features, 2 * terms + 1, 3);
        const std::vector<std::uint32_t> examples = every_other(terms);
        std::vector<float> y = normals(std::int64_t{terms} * (columns + 3));
        for (float& v : y) v *= 3000.0f;
        std::vector<std::int32_t> y_row, x_row;
        std::vector<GemmStep> step, bias_step;
        for (int e = 0; e < terms; ++e) {
          y_row.push_back(e * (columns + 3));
          step.push_back(
              {static_cast<std::int32_t>(examples[static_cast<std::size_t>(e)]) * t.features,
               y_row.back()});
          bias_step.push_back({0, y_row.back()});
        }
        for (int j = 0; j < t.features; ++j) x_row.push_back(j);
        const std::int64_t n = std::int64_t{t.features} * columns;
        Guarded<std::int32_t> units(n, -5);
        Guarded<std::int32_t> bias(columns, 7);
        kernels().add_coded_outer({.rows = table.view(t.codes),
                                   .examples = examples.data(),
                                   .y = y.data(),
                                   .y_row = y_row.data(),
                                   .units = units.data(),
                                   .bias_units = bias.data(),
                                   .terms = terms,
                                   .columns = columns});
        std::vector<std::int32_t> want(static_cast<std::size_t>(n), -5);
        std::vector<std::int32_t> want_bias(static_cast<std::size_t>(columns), 7);
        AddOuter dense{.x = table.dense.data(),
                       .y = y.data(),
                       .units = want.data(),
                       .x_row = x_row.data(),
                       .step = step.data(),
                       .rows = t.features,
                       .terms = terms,
                       .columns = columns};
        kernels().add_outer(dense);
        constexpr float kOne = 1.0f;
        constexpr std::int32_t kNoOffset = 0;
        dense.x = &kOne;
        dense.x_row = &kNoOffset;
        dense.step = bias_step.data();
        dense.rows = 1;
        dense.units = want_bias.data();
        kernels().add_outer(dense);
        EXPECT_EQ(units.values(), want) << t.features << " features, " << columns << " columns";
        EXPECT_EQ(bias.values(), want_bias);
        for (int j = 0; j < t.features; ++j)
          for (int c = 0; c < columns; ++c) {
            double sum = -5.0;
            for (int e = 0; e < terms; ++e)
              sum += std::nearbyint(table.x(examples[static_cast<std::size_t>(e)], j) *
                                    static_cast<double>(y[y_row[e] + c]));
            // Without a fused multiply-add a product is rounded twice.
            EXPECT_TRUE(std::abs(units[std::int64_t{j} * columns + c] - sum) <=
                        (GetParam() == SimdLevel::baseline ? terms : 0));
          }
      }
}

// --- A whole linear model ---

enum class Rows { coded, dense };
constexpr Rows kRows[] = {Rows::coded, Rows::dense};

/// One model, its sums, and what an example adds by the definition.
struct LinearCase {
  LinearCase(const Table& t, int codes, Loss loss, ClipSettings clip, std::vector<float> weights)
      : table(t), codes(codes), loss(loss), clip(clip), w(std::move(weights)) {
    w.back() = 0.0f;
    for (const std::int32_t j : t.number_feature) {
      number_weights.push_back(w[static_cast<std::size_t>(j)]);
    }
    number_weights.resize((number_weights.size() + 15) / 16 * 16);
  }

  struct Sums {
    std::vector<std::int32_t> units;  ///< by feature, then the bias's
    LinearFacts facts;
    bool operator==(const Sums& s) const { return units == s.units; }
  };

  Sums sums(const CpuKernels& kernels, const std::vector<std::uint32_t>& examples,
            Rows rows) const {
    const std::int64_t columns = (std::int64_t{table.features} + 16) / 16 * 16;
    Guarded<std::int32_t> units(columns, 0);
    Guarded<std::int32_t> numbers(static_cast<std::int64_t>(number_weights.size()), 0);
    // Behind the weights of features stands what no row of floats has a number for.
    std::vector<float> dense_weights(static_cast<std::size_t>(columns), 1e30f);
    std::copy_n(w.data(), table.features, dense_weights.data());
    Guarded<float> dense(table.dense);
    Sums out;
    std::int32_t bias_unit = 0;
    const auto run = [&](LinearFacts* facts) {
      const LinearExamples of{.examples = examples.data(),
                              .count = static_cast<int>(examples.size()),
                              .labels = table.labels.data(),
                              .bias = bias,
                              .loss = loss,
                              .clip = clip,
                              .inverse_grid = inverse_grid(),
                              .bias_unit = &bias_unit,
                              .facts = facts};
      if (rows == Rows::coded)
        kernels.coded_linear({.of = of,
                              .rows = table.view(codes),
                              .weights = w.data(),
                              .number_weights = number_weights.data(),
                              .units = units.data(),
                              .number_units = numbers.data()});
      else
        kernels.dense_linear({.of = of,
                              .floats = dense.data(),
                              .bytes = nullptr,
                              .features = table.features,
                              .weights = dense_weights.data(),
                              .units = units.data()});
      std::vector<std::int32_t> all(units.data(), units.data() + table.features);
      for (int k = 0; k < table.numbers(); ++k)
        all[static_cast<std::size_t>(table.number_feature[static_cast<std::size_t>(k)])] +=
            numbers[k];
      all.push_back(bias_unit);
      return all;
    };
    out.units = run(&out.facts);
    // A second call adds the same again, whether facts are asked for or not.
    std::vector<std::int32_t> twice = run(nullptr);
    for (std::size_t j = 0; j < twice.size(); ++j) twice[j] -= out.units[j];
    EXPECT_EQ(twice, out.units);
    const int first_unused = table.features + (rows == Rows::coded ? 1 : 0);
    for (std::int64_t j = first_unused; j < columns; ++j) EXPECT_EQ(units[j], 0);
    return out;
  }

  float inverse_grid() const {
    return static_cast<float>(1.0 / sum_grid(static_cast<double>(clip.clip_norm)));
  }

  struct Want {
    std::vector<double> units;
    double loss, norm;
    bool clipped;
  };
  Want want(std::uint32_t i) const {
    double z = static_cast<double>(bias);
    double square = 1.0;
    for (int j = 0; j < table.features; ++j) {
      z += table.x(i, j) * static_cast<double>(w[static_cast<std::size_t>(j)]);
      square += table.x(i, j) * table.x(i, j);
    }
    const double y = table.labels[i] != 0 ? 1.0 : -1.0;
    const bool logistic = loss == Loss::logistic;
    const double d = logistic ? -y / (1.0 + std::exp(y * z)) : y * z < 1.0 ? -y : 0.0;
    Want out;
    out.loss = logistic ? std::log1p(std::exp(-y * z)) : std::max(0.0, 1.0 - y * z);
    out.norm = std::abs(d) * std::sqrt(square);
    const auto bound = static_cast<double>(clip.clip_norm);
    const double factor = clip.kind == Clipping::automatic
                              ? bound / (out.norm + static_cast<double>(clip.stability))
                              : std::min(1.0, bound / out.norm);
    out.clipped = factor < 1.0;
    const double scaled = d * factor * static_cast<double>(inverse_grid());
    for (int j = 0; j < table.features; ++j) out.units.push_back(table.x(i, j) * scaled);
    out.units.push_back(scaled);
    return out;
  }

  const Table& table;
  int codes;
  Loss loss;
  ClipSettings clip;
  std::vector<float> w;
  std::vector<float> number_weights;
  float bias = 0.25f;
};

constexpr ClipSettings kClips[] = {
    {Clipping::flat, 1.5f}, {Clipping::per_layer, 40.0f}, {Clipping::automatic, 0.7f, 0.05f}};

TEST_P(CpuCodedKernel, ALinearModelsExampleAddsItsClippedGradient) {
  for (const Widths& t : kTables)
    for (const Loss loss : {Loss::logistic, Loss::hinge})
      for (const ClipSettings& clip : kClips) {
        const Table table(t.numbers, t.codes, t.features, 12, 5);
        const LinearCase c(table, t.codes, loss, clip, normals(t.features + 1));
        for (std::uint32_t i = 0; i < 24; ++i) {
          const LinearCase::Sums got = c.sums(kernels(), {i / 2}, kRows[i % 2]);
          const LinearCase::Want want = c.want(i / 2);
          for (std::size_t j = 0; j < want.units.size(); ++j)
            EXPECT_TRUE(std::abs(got.units[j] - want.units[j]) <=
                        (want.units[j] == 0.0 ? 0.0 : 2.0))
                << "row " << i / 2 << ", number " << j << ": " << got.units[j] << ", expected "
                << want.units[j];
          expect_near(kTallyUnit * static_cast<double>(got.facts.loss), want.loss, 1.0 + want.loss,
                      "loss");
          // A score is off by its rounding, what follows by as much more as the score is large.
          expect_near(kTallyUnit * static_cast<double>(got.facts.norm), want.norm,
                      1.0 + 10.0 * want.norm, "norm");
          EXPECT_EQ(got.facts.clipped, want.clipped ? 1 : 0);
          EXPECT_EQ(got.facts.non_finite, 0);
        }
      }
}

TEST_P(CpuCodedKernel, ALinearModelsSumIsThatOfItsRowsAlone) {
  for (const Rows rows : kRows)
    for (const Widths& t : {kTables[0], kTables[5], kTables[6]})
      for (const int count : {0, 1, 3, 16, 17, 33, kMaxLinearExamples}) {
        const Table table(t.numbers, t.codes, t.features, 2 * count + 1, 7);
        const LinearCase c(table, t.codes, Loss::logistic, {Clipping::flat, 1.0f},
                           normals(t.features + 1));
        const std::vector<std::uint32_t> examples = every_other(count);
        std::vector<std::int32_t> want(static_cast<std::size_t>(t.features) + 1, 0);
        LinearFacts facts;
        for (const std::uint32_t i : examples) {
          const LinearCase::Sums alone = c.sums(kernels(), {i}, rows);
          for (std::size_t j = 0; j < want.size(); ++j) want[j] += alone.units[j];
          facts.loss += alone.facts.loss;
          facts.norm += alone.facts.norm;
          facts.clipped += alone.facts.clipped;
        }
        const LinearCase::Sums got = c.sums(kernels(), examples, rows);
        EXPECT_EQ(got.units, want) << count << " examples";
        EXPECT_EQ(got.facts.loss, facts.loss);
        EXPECT_EQ(got.facts.norm, facts.norm);
        EXPECT_EQ(got.facts.clipped, facts.clipped);
      }
}

TEST_P(CpuCodedKernel, ALinearModelLeavesOutWhatIsNotFinite) {
  Table table(6, 8, 124, 40, 9);
  const std::vector<std::int32_t> nothing(125, 0);
  const std::vector<float> weights = normals(125);
  for (const Rows rows : kRows)
    for (const float bad : {kNan, INFINITY, -INFINITY, 3e38f, 1e25f}) {
      table.set_number(7, 2, bad);
      table.set_number(7, 6, bad * bad);
      table.x_of(7, table.number_feature[2]) = bad;
      const LinearCase c(table, 8, Loss::logistic, {Clipping::flat, 1.0f}, weights);
      const LinearCase::Sums alone = c.sums(kernels(), {7}, rows);
      EXPECT_EQ(alone.units, nothing);
      EXPECT_EQ(alone.facts.non_finite, 1);
      EXPECT_EQ(alone.facts.loss, 0);
      EXPECT_EQ(alone.facts.norm, 0);
      EXPECT_EQ(alone.facts.clipped, 0);
      const LinearCase::Sums with = c.sums(kernels(), {3, 7, 8}, rows);
      EXPECT_EQ(with.units, c.sums(kernels(), {3, 8}, rows).units);
      EXPECT_EQ(with.facts.non_finite, 1);
    }
}

TEST_P(CpuCodedKernel, ALinearModelReadsBytesAsTheFloatsThatTheyStandFor) {
  std::mt19937 random(11);
  for (const int features : {1, 15, 16, 17, 100, 784}) {
    const int rows = 40;
    constexpr float kScale = 1.0f / 255.0f;
    constexpr float kShift = -0.5f;
    Guarded<std::uint8_t> bytes(std::int64_t{rows} * features, 255);
    std::vector<float> floats;
    std::vector<std::uint8_t> labels;
    for (std::int64_t i = 0; i < std::int64_t{rows} * features; ++i) {
      bytes[i] = static_cast<std::uint8_t>(random());
      // As an image is loaded: by the level's own product and sum.
      float x = 0.0f;
      kernels().load_image({.bytes = &bytes[i],
                            .floats = nullptr,
                            .scale = kScale,
                            .shift = kShift,
                            .out = &x,
                            .layout = {.channels = 1, .stride = 1}});
      floats.push_back(x);
    }
    labels.reserve(static_cast<std::size_t>(rows));
    for (int i = 0; i < rows; ++i) labels.push_back(static_cast<std::uint8_t>(random() % 2));
    const std::vector<std::uint32_t> examples = every_other(rows / 2);
    const std::int64_t columns = std::int64_t{16} * ((features + 15) / 16);
    const std::vector<float> weights = normals(columns);
    const auto sums = [&](bool of_bytes) {
      Guarded<std::int32_t> units(columns + 1, 3);
      kernels().dense_linear({.of = {.examples = examples.data(),
                                     .count = static_cast<int>(examples.size()),
                                     .labels = labels.data(),
                                     .bias = 0.1f,
                                     .loss = Loss::logistic,
                                     .clip = {Clipping::flat, 1.0f},
                                     .inverse_grid = static_cast<float>(1.0 / sum_grid(1.0)),
                                     .bias_unit = &units[columns]},
                              .floats = of_bytes ? nullptr : floats.data(),
                              .bytes = of_bytes ? bytes.data() : nullptr,
                              .scale = kScale,
                              .shift = kShift,
                              .features = features,
                              .weights = weights.data(),
                              .units = units.data()});
      return units.values();
    };
    EXPECT_EQ(sums(true), sums(false)) << features;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CpuCodedKernel,
                         testing::Values(SimdLevel::baseline, SimdLevel::avx2, SimdLevel::avx512),
                         [](const auto& i) { return std::string(simd_name(i.param)); });

}  // namespace
}  // namespace cudp
