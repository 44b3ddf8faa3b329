// The layout of fused kernels (kernels/fused/plan.hpp, kernels/fused/packed.hpp), by the compiler
// and again here, from what its comments say.
#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/fused/dense_plan.hpp"
#include "kernels/fused/packed.hpp"
#include "kernels/fused/recurrent_plan.hpp"
#include "tests/kernels/fused_lists.hpp"

namespace cudp::fused {
namespace {

template <class N, Split split, Input input, int E, bool transforms>
using Case = Plan<N, split, input, E, transforms>;

template <class P>
class FusedPlan : public testing::Test {};
using Plans = testing::Types<Case<Cnn, Split::forward, Input::bytes, 4, false>,
                             Case<Cnn, Split::forward, Input::bytes, 1, true>,
                             Case<Cnn, Split::all, Input::numbers, 2, false>,
                             Case<ScatterCnn, Split::forward, Input::numbers, 2, false>,
                             Case<ScatterCnn, Split::all, Input::numbers, 1, true>,
                             Case<Odd, Split::forward, Input::numbers, 1, false>,
                             Case<Odd, Split::all, Input::numbers, 2, false>,
                             Case<Rows, Split::all, Input::bytes, 2, false>,
                             Case<Deep, Split::forward, Input::numbers, 4, true>>;
TYPED_TEST_SUITE(FusedPlan, Plans);

/// Each sum of a thread is of one parameter or of none, and each parameter is one thread's; with
/// example owners it is one thread's of every example.
TYPED_TEST(FusedPlan, GivesEachParameterOnePlace) {
  using P = TypeParam;
  std::vector<int> places(P::kStages.parameters, 0);
  for (int i = 0; i < P::kConvolutions; ++i) {
    const ConvStage s = P::stage(i);
    const int groups = s.blocks_m() / s.unit_m;
    const int chunks = s.units_k() / s.tap_count;
    ASSERT_EQ(s.units, groups * s.units_k());
    std::set<int> owned;
    for (int q = 0; q < s.owned(P::kExamples); ++q)
      for (int owner = 0; owner < s.owners(P::kExamples); ++owner)
        if (const int unit = owner + q * s.owners(P::kExamples); unit < s.units) {
          ASSERT_TRUE(owned.insert(unit).second);
        }
    ASSERT_EQ(static_cast<int>(owned.size()), s.units);
    for (int unit = 0; unit < s.units; ++unit)
      for (int m = 0; m < s.unit_m; ++m)
        for (int k = 0; k < s.unit_k; ++k)
          for (int channel = 0; channel < 16; ++channel)
            for (int n = 0; n < 8; ++n) {
              const int c = (unit % groups * s.unit_m + m) * 16 + channel;
              const int at = unit / groups;
              const int p = s.parameter(c, at / chunks, at % chunks * s.unit_k + k, n);
              if (p >= 0) ++places[p];
            }
  }
  for (int block = 0; block < P::kDense.blocks(); ++block)
    for (int k = 0; k < 32; ++k)
      ++places[P::kDense.parameter(block / (P::kDense.in / 4) * 8 + k / 4,
                                   block % (P::kDense.in / 4) * 4 + k % 4)];
  for (int n = 0; n < P::kSmall; ++n) ++places[P::small_number(n).parameter];
  for (int p = 0; p < P::kStages.parameters; ++p) ASSERT_EQ(places[p], 1) << p;
}

TYPED_TEST(FusedPlan, PlanesThatLiveTogetherDoNotOverlap) {
  using P = TypeParam;
  SharedLayout layout = P::kLayout;
  std::vector<Plane> all;
  layout.for_each([&](const Plane& p) {
    if (p.bytes > 0) all.push_back(p);
  });
  ASSERT_GT(all.size(), 8u);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].at % kBanks, 0);
    EXPECT_LE(all[i].at + all[i].bytes, layout.bytes);
    EXPECT_LE(P::kExamples * all[i].stride, all[i].bytes);
    for (std::size_t k = 0; k < i; ++k) {
      EXPECT_FALSE(all[i].is_live_with(all[k]) && all[i].overlaps(all[k])) << i << " and " << k;
    }
  }
  // An array is live from the phase that writes it to the last that reads it.
  for (int i = 0; i < P::kConvolutions; ++i) {
    const auto& c = layout.convolution[i];
    EXPECT_LE(c.input[0].first, i == 0 ? 0 : P::kPhases.pool(i - 1));
    EXPECT_EQ(c.input[0].last, P::kPhases.sum());
    EXPECT_GE(c.y.last, P::kPhases.pool(i));
    EXPECT_GE(c.gradient.last, P::kPhases.pool_back(i));
    EXPECT_GE(c.dy[0].last,
              P::stage(i).has_example_owners ? P::kPhases.gradient(i) : P::kPhases.sum());
  }
  EXPECT_EQ(layout.hidden_in[0].last, P::kPhases.sum());
  EXPECT_GE(layout.partial.last, P::kPhases.head());
  EXPECT_GE(layout.hidden_back[0].last, P::kPhases.hidden_back());
}

/// An example's part of an array has room for all that is written of it [bytes].
TYPED_TEST(FusedPlan, ExamplesHaveRoom) {
  using P = TypeParam;
  const SharedLayout layout = P::kLayout;
  for (int i = 0; i < P::kConvolutions; ++i) {
    const ConvStage s = P::stage(i);
    const auto& c = layout.convolution[i];
    const int windows = (s.out_height - s.pool + 1) * (s.out_width - s.pool + 1);
    EXPECT_GE(c.input[0].stride, 16 * s.planes * s.plane);
    EXPECT_GE(c.y.stride, 4 * s.splits * s.out_height * s.out_width * s.out);
    EXPECT_GE(c.gradient.stride, 4 * windows * s.out);
    EXPECT_GE(c.dy[0].stride, 2 * s.out * s.dy_plane);
    if (P::input_is_split(i)) {
      EXPECT_EQ(c.input[1].stride, c.input[0].stride);
    }
    if (P::kAll) {
      EXPECT_EQ(c.dy[1].stride, c.dy[0].stride);
    }
  }
  EXPECT_GE(layout.hidden_in[0].stride, 2 * P::kDense.in);
  EXPECT_GE(layout.hidden_back[0].stride, 2 * P::kDense.hidden);
  EXPECT_GE(layout.partial.stride, 4 * kWarps * P::kDense.hidden);
  EXPECT_GE(layout.vector.stride, 4 * (P::kVector.loss + 1));
  EXPECT_GE(layout.norm_parts.stride, 4 * P::kNormParts.size);
}

/// Every 8 rows that ldmatrix reads at once have 8 different places modulo 8, or the same place.
TYPED_TEST(FusedPlan, NoTwoRowsOfAMatrixShareABank) {
  using P = TypeParam;
  using Image = Packed<P>;
  const std::vector<unsigned char> image = Image::image();
  const auto table = [&](int at) {
    std::uint16_t v = 0;
    std::memcpy(&v, image.data() + Image::kTables + 2 * at, 2);
    return static_cast<int>(v);
  };
  const auto expect_spread = [](const std::vector<int>& rows, const std::string& what) {
    std::set<int> places(rows.begin(), rows.end()), banks;
    for (const int p : places) banks.insert(p % 8);
    EXPECT_EQ(places.size(), banks.size()) << what;
  };
  for (int i = 0; i < P::kConvolutions; ++i) {
    const ConvStage s = P::stage(i);
    const typename Image::Tables t = Image::tables(i);
    EXPECT_EQ(s.plane % 8, 0);
    EXPECT_EQ(s.dy_plane % 8, 0);
    std::vector<int> found(s.pixels(), 0);
    std::set<int> inputs;  // places of pixels' first taps
    for (int y = 0; y < s.out_height; ++y)
      for (int x = 0; x < s.out_width; ++x) inputs.insert(s.row * y + x);
    for (int slot = 0; slot < s.slots; slot += 8) {
      std::vector<int> x, dy;
      for (int r = 0; r < 8; ++r) {
        x.push_back(table(t.x + slot + r));
        dy.push_back(table(t.dy + slot + r));
        EXPECT_LT(x.back(), s.plane);
        EXPECT_LT(dy.back(), s.dy_plane);
        const int pixel = table(t.pixel + slot + r);
        if (pixel == kNone) {
          EXPECT_TRUE(inputs.contains(x.back())) << "slot " << slot + r;
          EXPECT_GE(dy.back(), s.dy_zeros);
          EXPECT_LT(dy.back(), s.dy_zeros + 8);
          continue;
        }
        ++found[pixel];
        EXPECT_EQ(x.back(), s.row * (pixel / s.out_width) + pixel % s.out_width);
        EXPECT_EQ(dy.back(), s.dy_place(pixel / s.out_width, pixel % s.out_width));
        EXPECT_TRUE(dy.back() < s.dy_zeros || dy.back() >= s.dy_zeros + 8) << "zeros are nobody's";
      }
      expect_spread(x, "inputs");
      expect_spread(dy, "gradients");
    }
    EXPECT_EQ(std::count(found.begin(), found.end(), 1), s.pixels());
    // Every tap of every slot is in its plane, of those that the example has.
    for (int tap = 0; tap < s.tap_count; ++tap)
      for (int chunk = 0; chunk < 2 * s.tap_steps(); ++chunk)
        for (int slot = 0; slot < s.slots; ++slot) {
          const int place = table(t.x + slot) + s.tap_place(tap, chunk);
          const int plane = s.is_taps ? 0 : chunk;
          ASSERT_GE(place, plane * s.plane) << "tap " << tap << ", slot " << slot;
          ASSERT_LT(place, (plane + 1) * s.plane) << "tap " << tap << ", slot " << slot;
          ASSERT_LT(plane, s.planes);
        }
    for (int half = 0; half < 2; ++half)
      for (int c = 0; c < s.out; c += 8) {
        std::vector<int> w;
        w.reserve(8);
        for (int r = 0; r < 8; ++r) w.push_back(s.weight_chunk(1, half, c + r));
        expect_spread(w, "weights");
      }
    if (s.phases == 0) continue;
    const ConvStage before = P::stage(i - 1);
    std::vector<int> made(before.pooled(), 0);
    for (int slot = 0; slot < s.phases * s.back_slots; slot += 8) {
      std::vector<int> dy;
      for (int r = 0; r < 8; ++r) {
        dy.push_back(table(t.back_dy + slot + r));
        const int pixel = table(t.back_pixel + slot + r);
        if (pixel == kNone) continue;
        ++made[pixel];
        EXPECT_EQ(table(t.back_x + slot + r), s.pixel_place(pixel / before.pooled_width() + s.pad,
                                                            pixel % before.pooled_width() + s.pad));
      }
      expect_spread(dy, "gradients, on the way back");
      // From a pixel's first tap to its last, all are in the plane.
      const int side = quotient_up(s.kernel, s.stride) - 1;
      for (const int p : dy) {
        EXPECT_GE(p - side * (s.dy_row + 1), 0);
        EXPECT_LT(p, s.dy_plane);
      }
    }
    EXPECT_EQ(std::count(made.begin(), made.end(), 1), before.pooled());
  }
  EXPECT_EQ(P::kDense.weight_pitch() % 2, 1);
  EXPECT_EQ(P::kDense.input_pitch() % 32, 4);
}

/// Slots, units and parts, from which the order of additions follows, are the same for every E.
TEST(FusedPlanOrder, DependsOnTheLayersAlone) {
  using One = Plan<Cnn, Split::forward, Input::bytes, 1, false>;
  using Four = Plan<Cnn, Split::forward, Input::bytes, 4, false>;
  for (int i = 0; i < One::kConvolutions; ++i) {
    EXPECT_EQ(One::out_slots(i).pixel, Four::out_slots(i).pixel);
    EXPECT_EQ(One::stage(i).units, Four::stage(i).units);
    EXPECT_EQ(One::stage(i).splits, Four::stage(i).splits);
  }
  EXPECT_EQ(One::kNormParts.size, Four::kNormParts.size);
  EXPECT_EQ(Packed<One>::image(), Packed<Four>::image());
}

/// No two parameters share a byte, none is where a table or a border is, and low parts are behind.
TYPED_TEST(FusedPlan, PacksEachParameterOnce) {
  using P = TypeParam;
  using Image = Packed<P>;
  const std::vector<PackedPlace> places = Image::places();
  ASSERT_EQ(static_cast<int>(places.size()), P::kStages.parameters);
  std::vector<int> used(Image::kBytes, 0);
  const auto use = [&](std::uint32_t byte, int n) {
    ASSERT_LE(byte + n, static_cast<std::uint32_t>(Image::kTables));
    ASSERT_EQ(byte % n, 0u);
    for (int k = 0; k < n; ++k) ++used[byte + k];
  };
  int floats = 0, parts = 0;
  for (const PackedPlace& p : places) {
    use(p.byte(), p.is_float() ? 4 : 2);
    if (p.has_low()) use(p.byte() + Image::kLow, 2);
    floats += p.is_float();
    parts += p.has_low();
  }
  EXPECT_LE(*std::max_element(used.begin(), used.end()), 1);
  EXPECT_EQ(floats, P::kSmall);
  int convolutions = 0;
  for (int i = 0; i < P::kConvolutions; ++i) convolutions += P::stage(i).weights();
  EXPECT_EQ(parts, convolutions + (P::kAll ? P::kDense.in * P::kDense.hidden : 0));
}

/// Bytes of shared memory and sums a thread, as kernels/README.md has them.
TEST(FusedPlanSizes, AreThoseOfTheTable) {
  using CnnFour = Plan<Cnn, Split::forward, Input::bytes, 4, false>;
  using CnnAll = Plan<Cnn, Split::all, Input::numbers, 2, false>;
  using Scatter = Plan<ScatterCnn, Split::forward, Input::numbers, 2, false>;
  EXPECT_EQ(CnnFour::kStages.parameters, 26'010);
  EXPECT_EQ(Scatter::kStages.parameters, 33'066);
  EXPECT_EQ(CnnFour::kSums, 57);
  EXPECT_EQ(Scatter::kSums, 73);
  EXPECT_EQ(CnnFour::kLayout.bytes, 4 * 36'480);
  EXPECT_EQ(CnnAll::kLayout.bytes, 119'424);
  EXPECT_EQ(Scatter::kLayout.bytes, 105'984);
  EXPECT_EQ(CnnFour::stage(0).slots, 192);
  EXPECT_EQ(CnnFour::stage(1).slots, 32);
  EXPECT_EQ(CnnFour::stage(1).back_slots, 48);
  EXPECT_EQ(CnnFour::stage(0).out_height, 13) << "of 14 rows: nobody looks at the last";
}

TEST(FusedPlanRefusal, SaysWhy) {
  const auto refusal = [](const auto& list) { return std::string(stages_of(list).refusal); };
  EXPECT_EQ(refusal(layers(Image{1, 9, 9}, convolution(15, 3, 1, 0), function(), dense(16),
                           function(), dense(2))),
            "channels that are no multiple of 16");
  EXPECT_EQ(refusal(layers(Image{1, 9, 9}, convolution(16, 9, 1, 0), function(), dense(16),
                           function(), dense(2))),
            "a kernel above 8");
  EXPECT_EQ(refusal(layers(Image{1, 9, 9}, dense(16), function(), dense(2))),
            "other layers than convolutions and two dense ones");
  EXPECT_EQ(
      refusal(layers(Image{1, 9, 9}, convolution(16, 3, 1, 0), dense(16), function(), dense(2))),
      "a layer without a function, or the last with one");
  EXPECT_EQ(refusal(layers(Image{1, 30, 30}, convolution(16, 3, 1, 0), function(), dense(16),
                           function(), dense(2))),
            "more than 16 windows in a row");
  EXPECT_EQ(refusal(layers(Image{1, 9, 9}, convolution(16, 3, 1, 0), function(), max_pool(3, 1),
                           dense(16), function(), dense(2))),
            "a pool that is not of 2 x 2 pixels, one apart, after a convolution");
  EXPECT_EQ(refusal(layers(Image{1, 9, 9}, convolution(16, 3, 1, 0), function(), dense(16),
                           function(), dense(33))),
            "more than 32 outputs");
}

// The plan of dense layers (kernels/fused/dense_plan.hpp) is worked out by the compiler, too.

constexpr std::size_t kH200 = std::size_t{227} * 1024;
constexpr int kTwoHidden[] = {60, 256, 128, 10}, kTooDeep[] = {3, 3, 3, 3, 3, 3, 3};
constexpr int kAsManyAsFit[] = {79'999, 1}, kOneTooMany[] = {80'000, 1}, kNone[] = {7};
static_assert(dense_plan(kTwoHidden, kH200, false).layers == 3);
static_assert(dense_plan(kTwoHidden, kH200, false).last().end() == 61 * 256 + 257 * 128 + 1290);
static_assert(dense_plan(kTwoHidden, kH200, false).tile == kMaxTile);
static_assert(dense_plan(kTwoHidden, 4 * 4556 - 1, false).tile == 0, "kTileExamples fit at least");
static_assert(dense_plan(kTwoHidden, std::size_t{4} * 4556, false).tile == 4);
static_assert(dense_plan(kTwoHidden, std::size_t{4} * 4752, true).tile == 4);
static_assert(dense_plan(kTwoHidden, 4 * 4752 - 1, true).tile == 0);
static_assert(dense_plan(kTooDeep, kH200, false).layers == 0);
static_assert(dense_plan(kNone, kH200, false).layers == 0);
static_assert(dense_plan(std::span<const int>(), kH200, false).layers == 0);
static_assert(dense_plan(kAsManyAsFit, 2 * kH200, false).layers == 1);
static_assert(dense_plan(kOneTooMany, 2 * kH200, false).layers == 0);

/// An example's arrays, with a 1 after each input, follow one another from multiples of 16 on;
/// parameters are in the order of the model file; rows have different banks.
TEST(DensePlan, GivesEachArrayItsOwnPlace) {
  const std::vector<std::vector<int>> lists = {
      {124, 1}, {15, 16}, {16, 15, 1}, {60, 256, 128, 10}, {21, 150, 17, 41, 9, 3}};
  for (const std::vector<int>& widths : lists) {
    const DenseShapes d = dense_plan(widths, kH200, false);
    ASSERT_EQ(d.layers + 1, static_cast<int>(widths.size()));
    std::vector<int> owners(static_cast<std::size_t>(d.row), 0);
    const auto own = [&](int from, int size) {
      EXPECT_EQ(from % 16, 0);
      for (int i = from; i < from + size; ++i) ++owners.at(static_cast<std::size_t>(i));
    };
    int parameter = 0, sums = 0;
    for (int layer = 0; layer < d.layers; ++layer) {
      const DenseLayer& l = d.layer[layer];
      const auto at = static_cast<std::size_t>(layer);
      EXPECT_TRUE(l.in == widths[at] && l.out == widths[at + 1]) << layer;
      EXPECT_EQ(l.weight_at, parameter);
      parameter += l.in * l.out;
      EXPECT_EQ(l.bias_at(), parameter);
      parameter += l.out;
      own(l.input, l.in + 1);
      own(l.gradient, l.out);
      const int parts = dense_parts(l.in, l.out);
      if (parts > 1) sums = std::max(sums, parts * l.out);
    }
    own(d.partial, sums);
    EXPECT_EQ(d.last().end(), parameter);
    for (const int n : owners) EXPECT_LE(n, 1);
    EXPECT_EQ(d.row % 32, 16);
  }
}

/// Networks of texts that one kernel can hold: two directions of 32 units or one of 64. What else
/// there is goes layer by layer.
static_assert(fits_block(ImdbRnn::kLayers) && fits_block(ImdbGru::kLayers) &&
              fits_block(ImdbOneWay::kLayers) && fits_block({36, 32, 32, 1, 9, 5}));
static_assert(!fits_block({100, 32, 64, 2, 16, 2}) && !fits_block({100, 32, 100, 1, 16, 2}) &&
              !fits_block({100, 32, 33, 1, 16, 2}) && !fits_block({100, 64, 32, 1, 16, 2}) &&
              !fits_block({99, 32, 32, 1, 16, 2}) && !fits_block({100, 32, 32, 1, 33, 2}) &&
              !fits_block({100, 32, 32, 1, 16, 33}));

/// Every parameter of a network of texts has one place among the rows and columns of its products,
/// the biases and the small numbers.
template <class N>
void expect_one_place_each(int parameters, int numbers) {
  using P = TextPlan<N, false>;
  EXPECT_EQ(P::kParameters, parameters);
  EXPECT_EQ(P::kNumbers, numbers);
  std::vector<int> places(static_cast<std::size_t>(P::kParameters), 0);
  const auto count = [&](int parameter) {
    if (parameter >= 0) ++places.at(static_cast<std::size_t>(parameter));
  };
  for (int row = 0; row < P::kGateRows; ++row)
    for (int column = 0; column < P::kWords + P::kHidden; ++column)
      count(P::gate_parameter(row, column));
  for (int output = 0; output < P::kWords; ++output)
    for (int column = 0; column < 8 * P::kWordColumns; ++column)
      count(P::word_parameter(output, column));
  std::vector<int> biases(static_cast<std::size_t>(P::kGateRows), 0);
  for (int n = 0; n < P::kBiases; ++n) {
    count(P::bias_parameter(n));
    ++biases.at(static_cast<std::size_t>(P::bias_row(n)));
  }
  for (int n = 0; n < P::kSmall; ++n) count(P::small_number(n).parameter);
  EXPECT_EQ(places, std::vector<int>(places.size(), 1));
  for (std::size_t row = 0; row < biases.size(); ++row)  // a GRU's r and z have two
    EXPECT_EQ(biases[row], P::kIsGru && (row % 4 == 1 || row % 4 == 2) ? 2 : 1) << row;
}
TEST(FusedPlan, ParametersOfTextsHaveOnePlaceEach) {
  expect_one_place_each<ImdbRnn>(20'946, 86);
  expect_one_place_each<ImdbGru>(16'978, 87);
  expect_one_place_each<ImdbOneWay>(29'138, 118);
}

}  // namespace
}  // namespace cudp::fused
