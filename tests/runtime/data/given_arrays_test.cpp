#include "runtime/data/given_arrays.hpp"

#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>

#include <gtest/gtest.h>

#include "runtime/base/error.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/data/given_array_reader.hpp"
#include "runtime/data/load.hpp"

namespace cudp {
namespace {

template <class T>
GivenArray given_of(const std::vector<T>& values, const char* type,
                    std::vector<std::uint64_t> shape) {
  GivenArray a{.name = "X",
               .type = type,
               .shape = std::move(shape),
               .strides = {},
               .data = reinterpret_cast<const std::byte*>(values.data()),
               .owner = {}};
  auto distance = static_cast<std::int64_t>(sizeof(T));
  a.strides.resize(a.shape.size());
  for (std::size_t d = a.shape.size(); d-- > 0;) {
    a.strides[d] = distance;
    distance *= static_cast<std::int64_t>(a.shape[d]);
  }
  return a;
}

std::vector<float> numbers_from_zero(std::size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

/// A request for arrays of three rows, two features, three classes.
struct ThreeRows {
  std::vector<float> x = {1, -2, 3.5f, 0, 5, 6};
  std::vector<std::uint8_t> y = {0, 2, 1};

  GivenArrays arrays() const {
    return {.train = {.x = given_of(x, "<f4", {3, 2}), .y = given_of(y, "|u1", {3})}, .test = {}};
  }
  static DataRequest request(GivenArrays arrays) {
    return {.dataset = "rows.npz",
            .given = std::make_shared<const GivenArrays>(std::move(arrays)),
            .classes = 3};
  }
};

TEST(GivenArrays, AnyStridesAreReadRowByRow) {
  const std::vector<float> values = numbers_from_zero(24);
  for (const std::size_t part : {1, 2, 5, 24}) {
    GivenArray a = given_of(values, "<f4", {4, 3, 2});
    std::swap(a.shape[0], a.shape[2]);
    std::swap(a.strides[0], a.strides[2]);
    EXPECT_FALSE(a.is_contiguous());
    GivenArrayReader reader(a);
    std::vector<float> found;
    while (found.size() < 24) {
      std::vector<float> next(std::min(part, 24 - found.size()));
      reader.read(std::span<float>(next));
      found.insert(found.end(), next.begin(), next.end());
    }
    reader.expect_end();
    std::size_t at = 0;
    for (int k = 0; k < 2; ++k)
      for (int j = 0; j < 3; ++j)
        for (int i = 0; i < 4; ++i)
          EXPECT_EQ(found[at++], values[static_cast<std::size_t>(i * 6 + j * 2 + k)]);
  }
}

TEST(GivenArrays, NegativeStridesAreReadBackwards) {
  const std::vector<float> values = numbers_from_zero(6);
  GivenArray a = given_of(values, "<f4", {3, 2});
  a.data += 4 * sizeof(float);
  a.strides[0] = -a.strides[0];
  GivenArrayReader reader(a);
  std::vector<float> found(6);
  reader.read(std::span<float>(found));
  EXPECT_EQ(found, (std::vector<float>{4, 5, 2, 3, 0, 1}));
  EXPECT_THROW(reader.read(std::span<float>(found)), Error);
}

TEST(GivenArrays, TypesOfWholeNumbers) {
  const auto read = [](const GivenArray& a) {
    std::vector<std::int64_t> found(a.shape[0]);
    GivenArrayReader(a).read(std::span<std::int64_t>(found));
    return found;
  };
  const std::vector<std::int64_t> expected = {3, -1};
  EXPECT_EQ(read(given_of(std::vector<std::int8_t>{3, -1}, "|i1", {2})), expected);
  EXPECT_EQ(read(given_of(std::vector<std::int16_t>{3, -1}, "<i2", {2})), expected);
  EXPECT_EQ(read(given_of(std::vector<std::int32_t>{3, -1}, "<i4", {2})), expected);
  EXPECT_EQ(read(given_of(std::vector<std::int64_t>{3, -1}, "<i8", {2})), expected);
  EXPECT_EQ(read(given_of(std::vector<std::uint64_t>{3, ~std::uint64_t{0}}, "<u8", {2})), expected);
  EXPECT_EQ(read(given_of(std::vector<std::uint32_t>{3, ~std::uint32_t{0}}, "<u4", {2})),
            (std::vector<std::int64_t>{3, 4294967295}));
  EXPECT_EQ(read(given_of(std::vector<std::uint8_t>{1, 255}, "|u1", {2})),
            (std::vector<std::int64_t>{1, 255}));
}

TEST(GivenArrays, FloatsLieWhereTheCallerHasThem) {
  const ThreeRows rows;
  DataSplit split = load_data(ThreeRows::request(rows.arrays()));
  EXPECT_EQ(split.train.float_values().data(), rows.x.data());
  EXPECT_TRUE(split.train.floats.empty());
  EXPECT_EQ(split.train.labels, rows.y);
  EXPECT_EQ(split.name, "rows");
  const Dataset two = select_examples(split.train, std::vector<std::size_t>{2, 0});
  EXPECT_EQ(two.floats, (std::vector<float>{5, 6, 1, -2}));
  own_features(split.train);
  EXPECT_EQ(split.train.floats, rows.x);
  EXPECT_NE(split.train.float_values().data(), rows.x.data());
}

TEST(GivenArrays, OtherTypesAndLayoutsAreCopied) {
  const ThreeRows rows;
  const std::vector<double> wide(rows.x.begin(), rows.x.end());
  GivenArrays arrays = rows.arrays();
  arrays.train.x = given_of(wide, "<f8", {3, 2});
  EXPECT_EQ(load_data(ThreeRows::request(arrays)).train.floats, rows.x);
  DataRequest zeroed = ThreeRows::request(rows.arrays());
  zeroed.malformed = Malformed::missing;  // rows may be replaced
  EXPECT_EQ(load_data(zeroed).train.floats, rows.x);
}

TEST(GivenArrays, BytesAreImages) {
  const ThreeRows rows;
  const std::vector<std::uint8_t> pixels(std::size_t{3} * 4 * 5, 7);
  GivenArrays arrays = rows.arrays();
  arrays.train.x = given_of(pixels, "|u1", {3, 4, 5});
  const DataSplit split = load_data(ThreeRows::request(arrays));
  EXPECT_EQ(split.train.shape, (Shape{1, 4, 5}));
  EXPECT_TRUE(split.train.is_bytes());
  EXPECT_EQ(split.train.byte_values().data(), pixels.data());
}

TEST(GivenArrays, WrongRowsAreRefused) {
  ThreeRows rows;
  rows.x[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(load_data(ThreeRows::request(rows.arrays())), InputError);
  rows = {};
  rows.y[1] = 3;
  EXPECT_THROW(load_data(ThreeRows::request(rows.arrays())), InputError);
  GivenArrays fewer = ThreeRows().arrays();
  fewer.train.y->shape[0] = 2;
  EXPECT_THROW(load_data(ThreeRows::request(fewer)), InputError);
}

TEST(GivenArrays, TestRowsHaveMemoryOfTheirOwn) {
  const ThreeRows rows, others;
  const auto load = [](GivenArrays arrays) {
    DataRequest request = ThreeRows::request(std::move(arrays));
    request.test_path = "rows-test.npz";
    return load_data(request);
  };
  GivenArrays arrays = rows.arrays();
  arrays.test = others.arrays().train;
  EXPECT_EQ(load(arrays).test.size(), 3u);
  arrays.test->x = arrays.train.x;
  EXPECT_THROW(load(arrays), InputError);
  arrays.test = others.arrays().train;
  arrays.test->y = arrays.train.y;
  EXPECT_THROW(load(arrays), InputError);
}

TEST(GivenArrays, WhatWasReadFromPrivateRowsIsMarked) {
  const ThreeRows rows;
  DataRequest request = ThreeRows::request(rows.arrays());
  EXPECT_TRUE(load_data(request).unsafe.empty());
  request.accept_private_bounds = true;
  EXPECT_EQ(load_data(request).unsafe.size(), 1u);
}

}  // namespace
}  // namespace cudp
