// Arrays of more than two dimensions, images of bytes, names in archives, and targets.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "runtime/data/array_layout.hpp"
#include "runtime/data/array_options.hpp"
#include "runtime/data/load.hpp"
#include "runtime/data/matrix_reader.hpp"
#include "tests/support/data_files.hpp"
#include "tests/support/npy_files.hpp"

namespace cudp {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Bytes 0, 1, 2, ...
Bytes counted_bytes(std::size_t n) {
  Bytes bytes(n);
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::uint8_t>(i);
  return bytes;
}

class Arrays : public testing::Test {
 protected:
  /// Reads an array of two examples with labels 0 and 2.
  DataSplit load(const std::string& array, const ArrayOptions& options = {}) const {
    DataRequest request{.dataset = dir_.write("x.npy", array),
                        .labels_path = dir_.write("y.npy", npy_labels({0, 2})),
                        .arrays = options,
                        .classes = options.target_bounds.empty() ? 3 : 0};
    return load_data(request);
  }
  std::string refused(const std::string& array, const ArrayOptions& options = {}) const {
    return refusal_of([&] { load(array, options); }, dir_.path());
  }

  TempFolder dir_;
};

TEST_F(Arrays, BytesAreImages) {
  const Bytes pixels = counted_bytes(std::size_t{2} * 3 * 2 * 4);
  const auto check = [&](const std::string& shape, const ArrayOptions& options,
                         const Shape& expected) {
    const Dataset train = load(npy("|u1", shape, bytes_of(pixels)), options).train;
    EXPECT_EQ(train.bytes, pixels) << shape;
    EXPECT_TRUE(train.is_bytes());
    EXPECT_TRUE(train.floats.empty());
    EXPECT_EQ(train.shape, expected) << shape;
    EXPECT_EQ(train.scale, 1.0f / 255.0f);
    EXPECT_EQ(train.labels, (Bytes{0, 2}));
  };
  check("(2, 6, 4)", {}, {1, 6, 4});
  check("(2, 3, 2, 4)", {}, {3, 2, 4});
  check("(2, 24)", {}, {24, 1, 1});
  check("(2, 24)", {.input_shape = "4x6"}, {1, 4, 6});
  check("(2, 24)", {.input_shape = "3x2x4"}, {3, 2, 4});
  check("(2, 3, 2, 4)", {.input_shape = "3x2x4"}, {3, 2, 4});
  check("(2, 6, 4)", {.input_shape = "6x4"}, {1, 6, 4});
  check("(2, 1, 6, 4)", {.input_shape = "6x4"}, {1, 6, 4});
  check("(2, 6, 4)", {.channels_last = true}, {1, 6, 4});
  check("(2, 24, 1)", {.input_shape = "24x1", .channels_last = true}, {1, 24, 1});
}

TEST_F(Arrays, ChannelsComeFirst) {
  Bytes last(std::size_t{2} * 24);
  std::vector<float> last_floats(last.size());
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t p = 0; p < 8; ++p) {
        last[24 * i + 3 * p + c] = static_cast<std::uint8_t>(24 * i + 8 * c + p);
        last_floats[24 * i + 3 * p + c] = static_cast<float>(24 * i + 8 * c + p);
      }
  const Bytes first = counted_bytes(48);
  for (const char* shape : {"(2, 2, 4, 3)", "(2, 24)"}) {
    const bool matrix = std::string(shape) == "(2, 24)";
    const ArrayOptions options{.input_shape = matrix ? "3x2x4" : "", .channels_last = true};
    const Dataset bytes = load(npy("|u1", shape, bytes_of(last)), options).train;
    EXPECT_EQ(bytes.bytes, first);
    EXPECT_EQ(bytes.shape, (Shape{3, 2, 4}));
    const Dataset floats = load(npy("<f4", shape, bytes_of(last_floats)), options).train;
    EXPECT_EQ(floats.floats, std::vector<float>(first.begin(), first.end()));
    EXPECT_EQ(floats.shape, (Shape{3, 2, 4}));
  }
}

TEST_F(Arrays, FloatsOfEachWidthAreImages) {
  const std::vector<float> x = {1, -2, 0.5f, 4, 5, 6, 7, 8};
  const std::vector<double> wide(x.begin(), x.end());
  const std::vector<std::uint16_t> halves = {0x3c00, 0xc000, 0x3800, 0x4400,
                                             0x4500, 0x4600, 0x4700, 0x4800};
  for (const auto& [type, content] :
       {std::pair("<f2", bytes_of(halves)), std::pair("<f4", bytes_of(x)),
        std::pair("<f8", bytes_of(wide))}) {
    const Dataset train = load(npy(type, "(2, 1, 2, 2)", content)).train;
    EXPECT_EQ(train.floats, x) << type;
    EXPECT_FALSE(train.is_bytes());
    EXPECT_EQ(train.shape, (Shape{1, 2, 2}));
  }
}

TEST_F(Arrays, ShapesThatDoNotFitHaveALine) {
  const auto bytes = [](const char* shape, std::size_t n) {
    return npy("|u1", shape, std::string(n, 'a'));
  };
  EXPECT_EQ(refused(bytes("(2, 4, 4, 3)", 96)),
            "DIR/x.npy: expected images [N, C, H, W]; --channels-last reads [N, H, W, C], "
            "--input-shape 4x4x3 states that channels are first, found the shape (N, 4, 4, 3)");
  EXPECT_EQ(refused(bytes("(2, 4, 4, 3)", 96), {.input_shape = "4x4x3"}), "");
  EXPECT_EQ(refused(bytes("(2, 4, 4, 3)", 96), {.input_shape = "3x4x4"}),
            "DIR/x.npy: expected examples of 3x4x4 (--input-shape): the shape (N, 3, 4, 4) or (N, "
            "48), found the shape (N, 4, 4, 3); --channels-last reads it");
  EXPECT_EQ(refused(bytes("(2, 47)", 94), {.input_shape = "3x4x4"}),
            "DIR/x.npy: expected examples of 3x4x4 (--input-shape): the shape (N, 3, 4, 4) or (N, "
            "48), found the shape (N, 47)");
  EXPECT_EQ(refused(bytes("(2, 48)", 96), {.channels_last = true}),
            "DIR/x.npy: expected --input-shape CxHxW with --channels-last and a matrix, found "
            "none; the rows have 48 numbers");
  EXPECT_EQ(refused(bytes("(2, 2, 2, 2, 2)", 32)),
            "DIR/x.npy: expected a matrix [N, D], or images [N, H, W] or [N, C, H, W], with 1 to "
            "1048576 numbers in each example, found the shape (N, 2, 2, 2, 2); x.reshape(len(x), "
            "-1) makes a matrix");
  EXPECT_EQ(refused(bytes("(2,)", 2)),
            "DIR/x.npy: expected a matrix [N, D], or images [N, H, W] or [N, C, H, W], with 1 to "
            "1048576 numbers in each example, found the shape (N,)");
  for (const char* shape : {"(2, 0, 3)", "(2, 2048, 2048)", "(2, 1048577)"})
    EXPECT_NE(refused(npy("|u1", shape, "")).find("with 1 to 1048576 numbers"), std::string::npos)
        << shape;
  EXPECT_EQ(refused(npy("<i4", "(2, 2, 2)", std::string(32, '\0'))),
            "DIR/x.npy: expected numbers of type float16, float32, float64 or uint8; "
            "x.astype(np.float32) makes such, found type <i4");
}

TEST_F(Arrays, OptionsThatAreNotOnesHaveALine) {
  for (const char* text : {"28", "0x28", "28x", "x28", "1x2x3x4", "2048x2048", "28*28", "-1x4"})
    EXPECT_EQ(refusal_of([&] { parse_input_shape(text, "--input-shape"); }),
              "--input-shape: expected the shape of one example, CxHxW or HxW, of 1 to 1048576 "
              "numbers, such as 3x32x32, found '" +
                  std::string(text) + "'");
  for (const char* text : {"a,b,c", ",b", "a,", "a,a", ","})
    EXPECT_EQ(refusal_of([&] { parse_array_names(text, "--arrays"); }),
              "--arrays: expected the names of two arrays, features first, such as "
              "x_train,y_train, found '" +
                  std::string(text) + "'");
  for (const char* text : {"1", "2,1", "1,1", "0,inf", "nan,1", "-1e308,1e308", "1,2,3", "a,b"})
    EXPECT_EQ(refusal_of([&] { parse_target_bounds(text, "--target-bounds"); }),
              "--target-bounds: expected two numbers, the smaller one first, such as 0,100, found "
              "'" +
                  std::string(text) + "'");
  EXPECT_EQ(parse_target_bounds("-2.5,1e3", ""), (TargetBounds{-2.5, 1000.0}));
  EXPECT_EQ(parse_input_shape("28x30", ""), (Shape{1, 28, 30}));
}

TEST_F(Arrays, AnArchiveMayNameThemOtherwise) {
  const std::string x = npy("|u1", "(2, 2, 2)", "abcdefgh"), y = npy_labels({0, 2});
  const std::string other = npy("|u1", "(1, 2, 2)", "stuv"), label = npy_labels({1});
  const auto read = [&](const std::vector<std::pair<std::string, std::string>>& members,
                        const ArrayOptions& options, bool test = false) {
    const std::string file = dir_.write("a.npz", zip(members));
    return load_data(
        {.dataset = file, .test_path = test ? file : "", .arrays = options, .classes = 3});
  };
  EXPECT_EQ(read({{"X.npy", x}, {"Y.npy", y}}, {}).train.labels, (Bytes{0, 2}));
  EXPECT_EQ(read({{"x.npy", x}, {"Y.npy", y}}, {}).train.labels, (Bytes{0, 2}));
  const std::vector<std::pair<std::string, std::string>> keras = {
      {"x_test.npy", other}, {"x_train.npy", x}, {"y_train.npy", y}, {"y_test.npy", label}};
  const ArrayOptions names{.arrays = "x_train,y_train", .test_arrays = "x_test,y_test"};
  const DataSplit split = read(keras, names, true);
  EXPECT_EQ(split.train.bytes, (Bytes{'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'}));
  EXPECT_EQ(split.test.bytes, (Bytes{'s', 't', 'u', 'v'}));
  EXPECT_EQ(split.test.labels, (Bytes{1}));

  const auto refusal = [&](const std::vector<std::pair<std::string, std::string>>& members,
                           const ArrayOptions& options, bool test = false) {
    return refusal_of([&] { read(members, options, test); }, dir_.path());
  };
  EXPECT_EQ(refusal(keras, {}),
            "DIR/a.npz: expected the arrays x and y, or X and Y, as np.savez(FILE, x=x, y=y) makes "
            "them; --arrays NAME,NAME names others, found 'x_test', 'x_train', 'y_train', "
            "'y_test'");
  EXPECT_EQ(refusal({{"x.npy", x}, {"X.npy", x}, {"y.npy", y}}, {}).substr(0, 40),
            "DIR/a.npz: expected the arrays x and y, ");
  EXPECT_EQ(refusal(keras, {.arrays = "x_train,labels"}),
            "DIR/a.npz: expected an array named 'labels', found 'x_test', 'x_train', 'y_train', "
            "'y_test'");
  // The training rows are never the test rows, under one name or two.
  for (const char* test : {"", "x_train,y_test", "x_test,y_train", "x_test"})
    EXPECT_EQ(refusal(keras, {.arrays = "x_train,y_train", .test_arrays = test}, true),
              "DIR/a.npz: expected test rows in a file of their own, or in arrays of their own "
              "(--test-arrays NAME,NAME), found the arrays of the training rows")
        << test;
  EXPECT_EQ(refusal({{"x.npy", x}, {"y.npy", y}, {"t.npy", label}}, {.test_arrays = "X,t"}, true)
                .substr(0, 60),
            "DIR/a.npz: expected test rows in a file of their own, or in ");
  EXPECT_EQ(refusal(keras, names),
            "--test-arrays: expected with --test-data only, found "
            "'x_test,y_test'");
  EXPECT_EQ(refused(x, {.arrays = "x,y"}),
            "DIR/x.npy: expected no --arrays with a .npy file, which has one array without a name, "
            "found 'x'");
}

TEST_F(Arrays, TestExamplesAreOfTheSameKind) {
  const auto refusal = [&](const std::string& train, const std::string& test) {
    DataRequest request{.dataset = dir_.write("x.npy", train),
                        .labels_path = dir_.write("y.npy", npy_labels({0, 2})),
                        .test_path = dir_.write("tx.npy", test),
                        .test_labels_path = dir_.write("ty.npy", npy_labels({1})),
                        .classes = 3};
    return refusal_of([&] { load_data(request); }, dir_.path());
  };
  const std::string bytes = npy("|u1", "(2, 2, 2)", "abcdefgh");
  EXPECT_EQ(refusal(bytes, npy("|u1", "(1, 2, 2)", "abcd")), "");
  EXPECT_EQ(refusal(bytes, npy("<f4", "(1, 2, 2)", std::string(16, '\0'))),
            "DIR/tx.npy: expected numbers of type uint8, as DIR/x.npy has, found floating-point "
            "numbers");
  EXPECT_EQ(refusal(bytes, npy("|u1", "(1, 2, 3)", "abcdef")),
            "DIR/tx.npy: expected examples of 1x2x2, as DIR/x.npy has, found examples of 1x2x3");
}

TEST_F(Arrays, TargetsAreScaledByPublicBounds) {
  const std::string x = npy_floats(4, {1, 2, 3, 4});
  const auto targets = [&](const std::string& y, Malformed malformed = Malformed::refuse,
                           std::int64_t classes = 0) {
    DataRequest request{.dataset = dir_.write("x.npy", x),
                        .labels_path = dir_.write("y.npy", y),
                        .arrays = {.target_bounds = "-10,30"},
                        .malformed = malformed,
                        .classes = static_cast<int>(classes)};
    return load_data(request);
  };
  const std::vector<double> wide = {-10, 30, 10, 1e300};
  const DataSplit split = targets(npy("<f8", "(4, 1)", bytes_of(wide)));
  EXPECT_EQ(split.train.targets, (std::vector<float>{-1, 1, 0, 1}));
  EXPECT_EQ(split.train.labels, Bytes(4));
  EXPECT_TRUE(split.train.has_targets());
  EXPECT_EQ(split.assumptions,
            std::vector<std::string>{
                "every feature and every target is finite: a training on a file with another is "
                "refused, and that is not counted"});
  EXPECT_EQ(targets(npy_labels({-10, 30, 10, -99})).train.targets,
            (std::vector<float>{-1, 1, 0, -1}));
  EXPECT_EQ(targets(npy("|u1", "(4,)", std::string("\0\x1e\x0a\xff", 4))).train.targets,
            (std::vector<float>{-0.5f, 1, 0, 1}));

  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::string holes =
      npy("<f4", "(4,)", bytes_of(std::vector<float>{std::nanf(""), kInf, -kInf, 10}));
  EXPECT_EQ(targets(holes, Malformed::missing).train.targets, (std::vector<float>{-1, 1, -1, 0}));
  EXPECT_EQ(refusal_of([&] { targets(holes); }, dir_.path()),
            "DIR/x.npy: 3 errors\n"
            "  target of row 0: expected a finite number (counted from 0), found nan\n"
            "  target of row 1: expected a finite number (counted from 0), found inf\n"
            "  target of row 2: expected a finite number (counted from 0), found -inf");
  EXPECT_EQ(refusal_of([&] { targets(holes, Malformed::missing, 2); }, dir_.path()),
            "--target-bounds: expected no --classes beside it, since a number that is predicted "
            "has no classes, found 2");
  EXPECT_EQ(refusal_of([&] { targets(npy_labels({1})); }, dir_.path()),
            "DIR/y.npy: expected one target for each example, found fewer");
}

/// The place is an index into the array as the file has it.
TEST_F(Arrays, ARowThatIsNotFiniteIsNamedOrBecomesZeros) {
  std::vector<float> x(std::size_t{2} * 2 * 2 * 3, 1.0f);
  x[12 + 2 * 3 + 1] = std::nanf("");
  const std::string file = npy("<f4", "(2, 2, 2, 3)", bytes_of(x));
  EXPECT_EQ(refused(file, {.channels_last = true}),
            "DIR/x.npy, row 1, index [1, 0, 1]: expected finite numbers (both counted from 0), "
            "found nan");
  DataRequest request{.dataset = dir_.write("x.npy", file),
                      .labels_path = dir_.write("y.npy", npy_labels({0, 2})),
                      .arrays = {.channels_last = true},
                      .malformed = Malformed::missing,
                      .classes = 3};
  std::vector<float> expected(24, 0.0f);
  std::fill_n(expected.begin(), 12, 1.0f);
  EXPECT_EQ(load_data(request).train.floats, expected);
}

TEST_F(Arrays, BlocksOfImagesAreInOrder) {
  const Bytes pixels = counted_bytes(250);
  const std::string x = dir_.write("x.npy", npy("|u1", "(50, 5)", bytes_of(pixels)));
  MatrixReader reader({.features = x, .read_labels = false, .classes = 2, .max_rows = 15});
  TableBlock block;
  Bytes all;
  while (reader.next(block))
    all.insert(all.end(), block.examples.bytes.begin(), block.examples.bytes.end());
  EXPECT_EQ(all, pixels);
}

/// An array of bytes and an IDX file of the same images are the same data set.
TEST_F(Arrays, BytesLoadAsAnIdxFileDoes) {
  const std::string pixels = "0123456789abcdefghijklmn";
  for (const char* part : {"train", "t10k"}) {
    const std::string name = part;
    dir_.write("images/" + name + "-images-idx3-ubyte", idx_images(2, 3, 4, pixels));
    dir_.write("images/" + name + "-labels-idx1-ubyte", idx_labels(2, std::string("\0\2", 2)));
  }
  const DataSplit idx = load_data({.dataset = dir_.path() + "/images", .classes = 3});
  const DataSplit array = load(npy("|u1", "(2, 3, 4)", pixels));
  EXPECT_EQ(array.train.bytes, idx.train.bytes);
  EXPECT_EQ(array.train.labels, idx.train.labels);
  EXPECT_EQ(array.train.shape, idx.train.shape);
  EXPECT_EQ(array.train.scale, idx.train.scale);
  EXPECT_EQ(array.train.shift, idx.train.shift);
  EXPECT_EQ(array.assumptions, idx.assumptions);
  EXPECT_EQ(array.size_is_public, idx.size_is_public);
}

TEST_F(Arrays, OptionsOfArraysAreForArrays) {
  EXPECT_EQ(refusal_of([] { load_data({.dataset = "glyphs", .arrays = {.channels_last = true}}); }),
            "--input-shape, --channels-last, --arrays, --test-arrays and --target-bounds: expected "
            "with a .npy or .npz file only, found with glyphs");
}

}  // namespace
}  // namespace cudp
