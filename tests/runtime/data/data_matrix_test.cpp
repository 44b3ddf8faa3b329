#include <bit>
#include <chrono>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "runtime/base/busy.hpp"
#include "runtime/data/load.hpp"
#include "runtime/data/matrix_reader.hpp"
#include "runtime/data/npy.hpp"
#include "runtime/data/zip.hpp"
#include "runtime/features/normalise.hpp"
#include "tests/support/data_files.hpp"
#include "tests/support/npy_files.hpp"

namespace cudp {
namespace {

const std::vector<float> kFeatures = {1, -2, 3.5f, 0, 5e-8f, 1e30f};  // [3, 2]
const std::vector<std::int64_t> kLabels = {0, 2, 1};

DataRequest request_of(const std::string& path, const std::string& labels = "") {
  return {.dataset = path, .labels_path = labels, .classes = 3};
}

TEST(Matrix, ReadsFilesAndArchives) {
  const TempFolder dir;
  const std::string x = npy_floats(3, kFeatures), y = npy_labels(kLabels);
  const auto check = [](const DataSplit& split) {
    EXPECT_EQ(split.train.floats, kFeatures);
    EXPECT_EQ(split.train.labels, (std::vector<std::uint8_t>{0, 2, 1}));
    EXPECT_EQ(split.train.shape, (Shape{2, 1, 1}));
    EXPECT_EQ(split.train.classes, 3);
    EXPECT_EQ(split.test.size(), 0u);
    EXPECT_FALSE(split.size_is_public);
    EXPECT_TRUE(split.unsafe.empty());
    EXPECT_EQ(split.assumptions.size(), 1u);
  };
  check(load_data(request_of(dir.write("x.npy", x), dir.write("y.npy", y))));
  check(load_data(request_of(dir.write("z.npy.gz", gzipped(x)), dir.write("y2.npy", y))));
  const std::vector<std::pair<std::string, std::string>> members = {{"y.npy", y}, {"x.npy", x}};
  for (const bool deflate : {false, true})
    for (const bool wide : {false, true})
      for (const char* comment : {"", "made by hand"})
        check(load_data(request_of(dir.write("xy.npz", zip(members, {deflate, wide, comment})))));
  EXPECT_EQ(load_data(request_of(dir.path() + "/xy.npz")).name, "xy");
  EXPECT_EQ(load_test_data(request_of(dir.path() + "/xy.npz")).examples.floats, kFeatures);
}

TEST(Matrix, ShowsHowMuchOfItHasBeenRead) {
  const TempFolder dir;
  const std::string x = npy_floats(3, kFeatures), y = npy_labels(kLabels);
  Busy busy("", Busy::Shown::never);
  DataRequest files = request_of(dir.write("x.npy", x), dir.write("y.npy", y));
  files.progress = &busy;
  load_data(files);
  EXPECT_TRUE(busy.line().starts_with("reading 'x.npy': 100 % after ")) << busy.line();
  DataRequest archive = request_of(dir.write("xy.npz", zip({{"y.npy", y}, {"x.npy", x}}, {})));
  archive.progress = &busy;
  load_data(archive);
  EXPECT_TRUE(busy.line().starts_with("reading 'xy.npz': 100 % after ")) << busy.line();
}

TEST(Matrix, TypesOfNumbers) {
  const TempFolder dir;
  const auto floats = [&](const std::string& file, const std::string& labels) {
    return load_data(request_of(dir.write("x.npy", file), dir.write("y.npy", labels))).train;
  };
  const std::string y = npy("|u1", "(2,)", std::string("\x00\x01", 2));
  const std::vector<std::uint16_t> halves = {0x3c00, 0xc000, 0x0001, 0x7bff};
  EXPECT_EQ(floats(npy("<f2", "(2, 2)", bytes_of(halves)), y).floats,
            (std::vector<float>{1.0f, -2.0f, 0x1p-24f, 65504.0f}));
  const std::vector<double> doubles = {0.1, 2.0};
  EXPECT_EQ(floats(npy("<f8", "(2, 1)", bytes_of(doubles)), y).floats,
            (std::vector<float>{0.1f, 2.0f}));
  const std::string x = npy_floats(2, {1.0f, 2.0f});
  const std::vector<std::uint8_t> expected = {2, 1};
  EXPECT_EQ(floats(x, npy("|i1", "(2, 1)", "\x02\x01")).labels, expected);
  EXPECT_EQ(floats(x, npy("<i2", "(2,)", bytes_of(std::vector<std::int16_t>{2, 1}))).labels,
            expected);
  EXPECT_EQ(floats(x, npy("<u4", "(2,)", bytes_of(std::vector<std::uint32_t>{2, 1}))).labels,
            expected);
  EXPECT_EQ(floats(x, npy("|b1", "(2,)", std::string("\x01\x00", 2))).labels,
            (std::vector<std::uint8_t>{1, 0}));
  EXPECT_EQ(floats(npy_with_header("{\"shape\":(2,1),\"descr\":\"<f4\",\"fortran_order\":False}",
                                   bytes_of(std::vector<float>{3, 4}), 2),
                   y)
                .floats,
            (std::vector<float>{3, 4}));
}

/// All 65,536 against the definition.
TEST(Npy, EveryHalf) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const double fraction = static_cast<double>(bits & 0x3ff) / 1024.0;
    double expected = exponent == 0    ? std::ldexp(fraction, -14)
                      : exponent == 31 ? (fraction == 0.0 ? HUGE_VAL : std::nan(""))
                                       : std::ldexp(1.0 + fraction, exponent - 15);
    if ((bits & 0x8000) != 0) expected = -expected;
    const float found = float_of_half(static_cast<std::uint16_t>(bits));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(found));
      continue;
    }
    ASSERT_EQ(found, static_cast<float>(expected)) << bits;
    ASSERT_EQ(std::signbit(found), std::signbit(expected)) << bits;
  }
}

TEST(Matrix, EveryFaultIsNamed) {
  const TempFolder dir;
  const std::string x = npy_floats(3, kFeatures), y = npy_labels(kLabels);
  const auto refused = [&](const std::string& features, const std::string& labels) {
    return refusal_of(
        [&] { load_data(request_of(dir.write("x.npy", features), dir.write("y.npy", labels))); },
        dir.path());
  };
  EXPECT_EQ(refused("age,ill\n1,no\n", y),
            "DIR/x.npy, byte 0: expected an array in NumPy's .npy format, found something else");
  EXPECT_EQ(refused("", y),
            "DIR/x.npy, byte 0: expected an array in NumPy's .npy format, found something else");
  EXPECT_EQ(refused(x.substr(0, x.size() - 1), y).substr(0, 15), "DIR/x.npy, byte");
  EXPECT_EQ(refused(x + "more", y),
            "DIR/x.npy, byte 152: expected the end of the file after the last number, found more "
            "bytes");
  EXPECT_EQ(refused(npy("|O", "(3, 2)", ""), y),
            "DIR/x.npy: expected numbers of a type <f2, <f4, <f8, or whole ones, little-endian; "
            "x.astype(np.float32) makes such, found type '|O'");
  EXPECT_EQ(refused(npy(">f4", "(3, 2)", bytes_of(kFeatures)), y).substr(0, 40),
            "DIR/x.npy: expected numbers of a type <f");
  EXPECT_EQ(refused(npy("<f4", "(6,)", bytes_of(kFeatures)), y),
            "DIR/x.npy: expected a matrix [N, D], or images [N, H, W] or [N, C, H, W], with 1 to "
            "1048576 numbers in each example, found the shape (N,)");
  EXPECT_EQ(refused(npy("<f4", "(0, 2)", ""), npy_labels({})), "")
      << "how many rows there are may be private";
  EXPECT_EQ(refused(npy("<f4", "(0, 2)", "more"), npy_labels({})).substr(0, 55),
            "DIR/x.npy, byte 128: expected the end of the file after");
  EXPECT_EQ(refused(npy("<f4", "(1099511627776, 1099511627776)", ""), y),
            "DIR/x.npy: expected fewer numbers, found a shape of more than 2^60");
  EXPECT_EQ(refused(npy("<f4", "(1152921504606846976, 1)", ""), y),
            "DIR/y.npy: expected one label for each example, found fewer");
  EXPECT_EQ(refused(npy_with_header("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2)}",
                                    bytes_of(kFeatures)),
                    y),
            "DIR/x.npy: expected an array that lies row by row; np.ascontiguousarray(x) makes it "
            "so, found one that lies column by column");
  EXPECT_EQ(refused(npy_with_header("{'descr': '<f4'}", ""), y).substr(0, 44),
            "DIR/x.npy, header of a .npy file: expected d");
  EXPECT_EQ(refused(y, y),
            "DIR/x.npy: expected numbers of type float16, float32, float64 or uint8; "
            "x.astype(np.float32) makes such, found type <i8");
  EXPECT_EQ(refused(x, x),
            "DIR/y.npy: expected labels of a type of whole numbers, such as int64; --target-bounds "
            "LOW,HIGH predicts a number instead, found type <f4");
  EXPECT_EQ(refused(x, npy_labels({0, 1})),
            "DIR/y.npy: expected one label for each example, found fewer");
  for (const char* const rows : {"(1, 3)", "(1, 300)"})
    EXPECT_EQ(refused(x, npy("<i8", rows, "")),
              "DIR/y.npy: expected one label for each example, found an array of shape [rows, "
              "several]")
        << "the second number may be that of the rows";
  EXPECT_EQ(refused(x, npy_labels({0, 3, -1})),
            "DIR/x.npy: 2 errors\n"
            "  label of row 1: expected a class of 0 to 2, found 3\n"
            "  label of row 2: expected a class of 0 to 2, found a negative or very large number");
  std::vector<float> not_finite = kFeatures;
  not_finite[3] = std::nanf("");
  EXPECT_EQ(refused(npy_floats(3, not_finite), y),
            "DIR/x.npy, row 1, column 1: expected finite numbers (both counted from 0), found nan");
  EXPECT_EQ(
      refusal_of([&] { load_data({.dataset = dir.path() + "/x.npy", .classes = 3}); }, dir.path()),
      "DIR/x.npy: expected --labels FILE.npy, or a .npz file with x and y, found no labels");
  EXPECT_EQ(
      refusal_of([&] { load_data({.dataset = dir.path() + "/x.npy"}); }, dir.path()).substr(0, 33),
      "DIR/x.npy: expected --classes N, ");
  // A table is never guessed in bytes, nor a matrix in a table.
  EXPECT_EQ(refusal_of([&] { load_data({.dataset = dir.write("t.csv", x)}); }, dir.path()),
            "DIR/t.csv: expected a table of text, found a NumPy array; let its name end in .npy");
}

TEST(Matrix, FaultsOfArchives) {
  const TempFolder dir;
  const std::string x = npy_floats(3, kFeatures), y = npy_labels(kLabels);
  const auto refused = [&](const std::string& archive) {
    return refusal_of([&] { load_data(request_of(dir.write("z.npz", archive))); }, dir.path());
  };
  EXPECT_EQ(refused(zip({{"a.npy", x}, {"b.npy", y}})),
            "DIR/z.npz: expected the arrays x and y, or X and Y, as np.savez(FILE, x=x, y=y) makes "
            "them; --arrays NAME,NAME names others, found 'a', 'b'");
  EXPECT_EQ(refused("short"), "DIR/z.npz, byte 0: expected a zip archive, found 5 bytes");
  EXPECT_EQ(refused(std::string(100, 'x')),
            "DIR/z.npz, byte 100: expected the directory of a zip archive at the end of the file, "
            "found none");
  // A byte of the content that its checksum does not fit.
  std::string damaged = zip({{"x.npy", x}, {"y.npy", y}});
  damaged[damaged.find(bytes_of(kFeatures)) + 1] ^= 1;
  EXPECT_EQ(refused(damaged),
            "DIR/z.npz, member 'x.npy': expected the content that its CRC-32 is of, found damage");
  // Every archive cut short is refused, and nothing else happens.
  for (const bool deflate : {false, true}) {
    const std::string whole = zip({{"x.npy", x}, {"y.npy", y}}, {.deflate = deflate, .wide = true});
    for (std::size_t size = 0; size < whole.size(); size += 3)
      EXPECT_NE(refused(whole.substr(0, size)), "") << size;
    // So is one that has more in front: every place in it is wrong then.
    EXPECT_NE(refused("123456" + whole), "");
  }
}

TEST(Matrix, RowsThatAreNotFiniteCanBeZeros) {
  const TempFolder dir;
  std::vector<float> values = kFeatures;
  values[2] = std::numeric_limits<float>::infinity();
  DataRequest request = request_of(dir.write("x.npy", npy_floats(3, values)),
                                   dir.write("y.npy", npy_labels({2, -5, 1})));
  request.malformed = Malformed::missing;
  const DataSplit split = load_data(request);
  EXPECT_EQ(split.train.floats, (std::vector<float>{1, -2, 0, 0, 5e-8f, 1e30f}));
  EXPECT_EQ(split.train.labels, (std::vector<std::uint8_t>{2, 0, 1}));
}

TEST(Matrix, BlocksAreInOrder) {
  const TempFolder dir;
  std::vector<float> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const std::string x = dir.write("x.npy", npy_floats(500, values));
  MatrixReader reader({.features = x, .read_labels = false, .classes = 2, .max_rows = 150});
  TableBlock block;
  std::size_t rows = 0;
  while (reader.next(block)) {
    EXPECT_EQ(block.first_row, rows);
    EXPECT_EQ(block.examples.floats[0], static_cast<float>(2 * rows));
    rows += block.examples.size();
  }
  EXPECT_EQ(rows, 500u);
}

TEST(Matrix, TheOtherPairIsTheTestSet) {
  const TempFolder dir;
  const std::string x = dir.write("x.npy", npy_floats(3, kFeatures));
  const std::string y = dir.write("y.npy", npy_labels(kLabels));
  const std::string tx = dir.write("tx.npy", npy_floats(1, {7, 8}));
  const std::string ty = dir.write("ty.npy", npy_labels({2}));
  DataRequest request = request_of(x, y);
  request.test_path = tx;
  request.test_labels_path = ty;
  const DataSplit split = load_data(request);
  EXPECT_EQ(split.test.floats, (std::vector<float>{7, 8}));
  EXPECT_EQ(split.test.labels, (std::vector<std::uint8_t>{2}));
  dir.write("tx.npy", npy_floats(1, {7, 8, 9}));
  EXPECT_EQ(refusal_of([&] { load_data(request); }, dir.path()),
            "DIR/tx.npy: expected 2 features, as DIR/x.npy has, found 3");
  request.test_path = x;
  EXPECT_EQ(refusal_of([&] { load_data(request); }, dir.path()),
            "DIR/x.npy: expected test rows in a file of their own, found the file of the training "
            "rows, DIR/x.npy");
}

TEST(Normalise, UnitAndLayerAgainstTheirDefinitions) {
  std::vector<float> rows = {3, 4, 0, 0, 0, 0, -1e30f, 1e30f, 5, 1e-30f, 2e-30f, 0};
  std::vector<float> layer = rows;
  normalise_rows(rows, 3, Normalise::unit, 1);
  EXPECT_FLOAT_EQ(rows[0], 0.6f);
  EXPECT_FLOAT_EQ(rows[1], 0.8f);
  for (int i = 3; i < 6; ++i) EXPECT_EQ(rows[static_cast<std::size_t>(i)], 0.0f);
  EXPECT_FLOAT_EQ(rows[6], -std::sqrt(0.5f));  // its squares overflow a float
  EXPECT_FLOAT_EQ(rows[9], 1.0f / std::sqrt(5.0f));
  normalise_rows(layer, 3, Normalise::layer, 1);
  const double mean = 7.0 / 3.0, variance = (9.0 + 16.0) / 3.0 - mean * mean;
  EXPECT_NEAR(layer[0], (3.0 - mean) / std::sqrt(variance + 1e-5), 1e-6);
  EXPECT_EQ(layer[3], 0.0f);
  EXPECT_NEAR(layer[6], -std::sqrt(1.5), 1e-6);
  EXPECT_NEAR(layer[9], 0.0, 1e-6);
}

/// One row moves only itself, whatever it is.
TEST(Normalise, OtherRowsStayBitForBit) {
  constexpr std::size_t kWidth = 7, kRows = 9000;
  std::vector<float> all(kRows * kWidth);
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<float>((i * 2654435761u) % 2001) / 100.0f - 10.0f;
  for (const Normalise how : {Normalise::unit, Normalise::layer}) {
    std::vector<float> usual = all;
    normalise_rows(usual, kWidth, how, 2);
    for (const float strange :
         {std::nanf(""), std::numeric_limits<float>::infinity(), 3.4e38f, 1e-45f}) {
      std::vector<float> changed = all;
      constexpr std::size_t kRow = 4321;
      for (std::size_t i = 0; i < kWidth; ++i)
        changed[kRow * kWidth + i] = i % 2 == 0 ? strange : -strange;
      normalise_rows(changed, kWidth, how, 1);
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (i / kWidth == kRow)
          ASSERT_TRUE(std::isfinite(changed[i]) && std::fabs(changed[i]) < 10.0f) << strange;
        else
          ASSERT_EQ(std::bit_cast<std::uint32_t>(changed[i]),
                    std::bit_cast<std::uint32_t>(usual[i]));
      }
    }
  }
}

}  // namespace
}  // namespace cudp
