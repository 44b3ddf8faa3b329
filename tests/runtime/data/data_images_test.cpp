#include <gtest/gtest.h>

#include "runtime/data/cifar.hpp"
#include "runtime/data/idx.hpp"
#include "runtime/data/load.hpp"
#include "tests/support/data_files.hpp"

namespace cudp {
namespace {

std::string cifar_record(char label, char pixel) {
  return label + std::string(kCifarPixels, pixel);
}

/// The four files of a small IDX data set, some of which a test replaces.
void write_idx(const TempFolder& dir, const std::string& folder = "") {
  dir.write(folder + "train-images-idx3-ubyte", idx_images(3, 2, 2, "abcdefghijkl"));
  dir.write(folder + "train-labels-idx1-ubyte", idx_labels(3, {"\0\1\2", 3}));
  dir.write(folder + "t10k-images-idx3-ubyte", idx_images(2, 2, 2, "mnopqrst"));
  dir.write(folder + "t10k-labels-idx1-ubyte", idx_labels(2, {"\2\0", 2}));
}

std::string load_refusal(const TempFolder& dir, const std::string& dataset) {
  return refusal_of([&] { load_data({.dataset = dataset, .dir = dir.path()}); }, dir.path());
}

TEST(Idx, ReadsAFolderByItsPath) {
  const TempFolder dir;
  write_idx(dir);
  const DataSplit split = load_data({.dataset = dir.path()});
  EXPECT_EQ(split.train.shape, (Shape{1, 2, 2}));
  EXPECT_EQ(split.train.classes, 10);  // whatever the labels are
  EXPECT_EQ(split.test.classes, 10);
  EXPECT_EQ(split.train.size(), 3u);
  EXPECT_EQ(split.train.bytes[11], 'l');
  EXPECT_EQ(split.test.labels, (std::vector<std::uint8_t>{2, 0}));
  EXPECT_FALSE(split.size_is_public);
  EXPECT_TRUE(load_data({.dataset = dir.path(), .size_is_public = true}).size_is_public);
}

/// Found by name, and then refused: they are not the published ones.
TEST(Idx, TheFolderMayHoldAFolderOfTheName) {
  const TempFolder dir;
  write_idx(dir, "fashion-mnist/");
  for (const std::string& place : {dir.path(), dir.path() + "/fashion-mnist"})
    EXPECT_TRUE(
        refusal_of([&] { load_data({.dataset = "fashion-mnist", .dir = place}); }, dir.path())
            .starts_with("DIR/fashion-mnist/"));
  // The same four file names, but the folder says that they are another data set.
  EXPECT_NE(refusal_of([&] {
              load_data({.dataset = "mnist", .dir = dir.path() + "/fashion-mnist"});
            }).find("scripts/fetch_data.sh mnist downloads it"),
            std::string::npos);
}

TEST(Idx, CompressedFilesLoadTheSame) {
  const TempFolder dir;
  write_idx(dir);
  const auto plain = load_data({.dataset = dir.path()});
  const TempFolder packed;
  packed.write("train-images-idx3-ubyte.gz", gzipped(idx_images(3, 2, 2, "abcdefghijkl")));
  packed.write("train-labels-idx1-ubyte.xz", xzipped(idx_labels(3, {"\0\1\2", 3})));
  packed.write("t10k-images.idx3-ubyte", idx_images(2, 2, 2, "mnopqrst"));
  packed.write("t10k-labels-idx1-ubyte.gz", idx_labels(2, {"\2\0", 2}));  // unpacked by a browser
  const auto loaded = load_data({.dataset = packed.path()});
  EXPECT_EQ(loaded.train.bytes, plain.train.bytes);
  EXPECT_EQ(loaded.train.labels, plain.train.labels);
  EXPECT_EQ(loaded.test.bytes, plain.test.bytes);
  EXPECT_EQ(loaded.test.labels, plain.test.labels);
}

TEST(Idx, EveryFaultHasItsLine) {
  const auto images = [](const std::string& bytes) {
    return refusal_of([&] {
      read_idx_images(
          *memory_bytes("f", {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}));
    });
  };
  EXPECT_EQ(images("abc"), "f, byte 0: expected an IDX header of 16 bytes, found 3 bytes");
  EXPECT_EQ(images(idx_labels(8, "12345678")),
            "f, byte 0: expected the magic number 2051 of IDX images, found 2049");
  EXPECT_EQ(images(idx_images(0, 2, 2, "")), "") << "how many there are may be private";
  EXPECT_EQ(images(idx_images(1, 0, 2, "")), "f, byte 8: expected 1 to 4096 rows, found 0");
  EXPECT_EQ(images(idx_images(1, 2, 4097, "")),
            "f, byte 12: expected 1 to 4096 columns, found 4097");
  EXPECT_EQ(images(idx_images(2, 2, 2, "abcdefg")),
            "f, byte 23: expected 8 bytes of pixels, found the end of the file after 7");
  EXPECT_EQ(images(idx_images(2, 2, 2, "abcdefghi")),
            "f, byte 24: expected the end of the file after pixels, found more bytes");
  EXPECT_EQ(images(idx_images(0x7fffffff, 4096, 4096, "")),
            "f, byte 16: expected 36028797002186752 bytes of pixels, found the end of the file "
            "after 0");
  EXPECT_EQ(images(idx_images(0xffffffff, 0xffffffff, 0xffffffff, "")),
            "f, byte 4: expected 0 to 2147483647 images, found 4294967295");
}

TEST(Idx, FaultsBetweenFilesHaveTheirLine) {
  const TempFolder dir;
  EXPECT_EQ(load_refusal(dir, "mnist"),
            "DIR: expected train-images-idx3-ubyte, plain, .gz or .xz, in DIR/mnist or DIR, found "
            "neither; scripts/fetch_data.sh mnist downloads it");
  EXPECT_EQ(load_refusal(dir, dir.path()),
            "DIR: expected IDX files (train-images-idx3-ubyte, ...) or CIFAR batches "
            "(data_batch_1.bin, ...), plain, .gz or .xz, found neither");
  write_idx(dir);
  dir.write("train-labels-idx1-ubyte", idx_labels(4, {"\0\1\2\3", 4}));
  EXPECT_EQ(load_refusal(dir, dir.path()),
            "DIR/train-labels-idx1-ubyte, byte 4: expected one label for each image of "
            "train-images-idx3-ubyte, found more");
  dir.write("train-labels-idx1-ubyte", idx_labels(3, {"\0\12\2", 3}));
  EXPECT_EQ(load_refusal(dir, dir.path()),
            "DIR/train-labels-idx1-ubyte, label 1: expected a class of 0 to 9 (cudp train "
            "--classes N if there are others), found 10");
  write_idx(dir);
  dir.write("t10k-images-idx3-ubyte", idx_images(2, 1, 4, "mnopqrst"));
  EXPECT_EQ(load_refusal(dir, dir.path()),
            "DIR/t10k-images-idx3-ubyte, byte 8: expected 2 x 2 pixels as in "
            "train-images-idx3-ubyte, found 1 x 4");
  std::filesystem::remove(dir.path() + "/t10k-images-idx3-ubyte");
  EXPECT_EQ(load_refusal(dir, dir.path()),
            "DIR: expected t10k-images-idx3-ubyte or t10k-images.idx3-ubyte, plain, .gz or .xz, "
            "found no such file");
}

/// How many classes there are is said by the user or the format, and never read from labels.
TEST(Idx, ClassesAreDeclared) {
  const TempFolder dir;
  write_idx(dir);
  const auto refusal = [&](int classes) {
    return refusal_of([&] { load_data({.dataset = dir.path(), .classes = classes}); }, dir.path());
  };
  EXPECT_EQ(load_data({.dataset = dir.path(), .classes = 3}).train.classes, 3);
  EXPECT_EQ(load_data({.dataset = dir.path(), .classes = 256}).test.classes, 256);
  dir.write("train-labels-idx1-ubyte", idx_labels(3, {"\0\1\1", 3}));
  EXPECT_EQ(refusal(2),
            "DIR/t10k-labels-idx1-ubyte, label 0: expected a class of 0 to 1 (cudp train "
            "--classes N if there are others), found 2");
  dir.write("t10k-labels-idx1-ubyte", idx_labels(2, {"\0\0", 2}));
  EXPECT_EQ(load_data({.dataset = dir.path()}).train.classes, 10);
  EXPECT_EQ(refusal_of([] { load_data({.dataset = "glyphs", .classes = 10}); }),
            "--classes: expected with a folder of images or a .npy or .npz file only, found with "
            "glyphs");
  const std::string table = dir.write("t.csv", "a,y\n1,0\n3,1\n");
  EXPECT_EQ(refusal_of([&] { load_data({.dataset = table, .classes = 2}); }, dir.path()),
            "--classes: expected with a folder of images or a .npy or .npz file only, found with "
            "DIR/t.csv; the classes of a table are the values of its schema's label");
}

/// Links are the same file; equal files are not looked for.
TEST(Idx, TestImagesAreNotTheTrainingImages) {
  const TempFolder dir;
  write_idx(dir);
  const std::string test = dir.path() + "/t10k-images-idx3-ubyte";
  std::filesystem::remove(test);
  std::filesystem::create_hard_link(dir.path() + "/train-images-idx3-ubyte", test);
  EXPECT_EQ(load_refusal(dir, dir.path()),
            "DIR/t10k-images-idx3-ubyte: expected test rows in a file of their own, found the file "
            "of the training rows, DIR/train-images-idx3-ubyte");
  std::filesystem::remove(test);
  std::filesystem::copy(dir.path() + "/train-images-idx3-ubyte", test);
  dir.write("t10k-labels-idx1-ubyte", idx_labels(3, {"\0\1\2", 3}));
  EXPECT_EQ(load_refusal(dir, dir.path()), "");
}

TEST(Idx, ATruncatedGzipIsRefused) {
  const TempFolder dir;
  write_idx(dir);
  const std::string gz = gzipped(idx_images(3, 2, 2, "abcdefghijkl"));
  std::filesystem::remove(dir.path() + "/train-images-idx3-ubyte");
  dir.write("train-images-idx3-ubyte.gz", gz.substr(0, gz.size() - 5));
  EXPECT_EQ(load_refusal(dir, "mnist"),
            "DIR/train-images-idx3-ubyte.gz, byte " + std::to_string(gz.size() - 5) +
                " of the compressed file: expected the rest of a gzip stream, found the end of the "
                "file (truncated?)");
}

TEST(Cifar, ReadsBatchesOfAnySizeAndCompression) {
  const TempFolder dir;
  for (int b = 1; b <= 5; ++b) {
    std::string records;
    for (int i = 0; i < 100 * b; ++i)
      records += cifar_record(static_cast<char>(b), static_cast<char>(i));
    const std::string name = "cifar-10/data_batch_" + std::to_string(b) + ".bin";
    if (b % 3 == 0) dir.write(name, records);
    if (b % 3 == 1) dir.write(name + ".gz", gzipped(records));
    if (b % 3 == 2) dir.write(name + ".xz", xzipped(records));
  }
  dir.write("cifar-10/test_batch_first1000.bin", cifar_record(9, 'x'));
  DataSplit split = load_data({.dataset = dir.path() + "/cifar-10"});
  EXPECT_EQ(split.name, "own cifar-10");  // these are not the published images
  EXPECT_EQ(split.train.shape, (Shape{3, 32, 32}));
  ASSERT_EQ(split.train.size(), 1500u);
  ASSERT_EQ(split.train.bytes.size(), 1500u * kCifarPixels);
  std::size_t at = 0;
  for (int b = 1; b <= 5; ++b)
    for (int i = 0; i < 100 * b; ++i, ++at) {
      ASSERT_EQ(split.train.labels[at], b);
      ASSERT_EQ(split.train.bytes[at * kCifarPixels], static_cast<std::uint8_t>(i));
      ASSERT_EQ(split.train.bytes[(at + 1) * kCifarPixels - 1], static_cast<std::uint8_t>(i));
    }
  EXPECT_EQ(
      split.notes,
      (std::vector<std::string>{"the test set is the first 1,000 images of test_batch.bin only"}));
  dir.write("cifar-10/test_batch.bin", cifar_record(8, 'x') + cifar_record(7, 'y'));
  split = load_data({.dataset = dir.path() + "/cifar-10"});
  EXPECT_EQ(split.test.labels, (std::vector<std::uint8_t>{8, 7}));
  EXPECT_TRUE(split.notes.empty());
}

TEST(Cifar, ClassesAreDeclared) {
  const TempFolder dir;
  for (int b = 1; b <= 5; ++b)
    dir.write("data_batch_" + std::to_string(b) + ".bin", cifar_record(1, 'x'));
  dir.write("test_batch.bin", cifar_record(2, 'x'));
  EXPECT_EQ(load_data({.dataset = dir.path()}).train.classes, 10);
  EXPECT_EQ(load_data({.dataset = dir.path(), .classes = 3}).test.classes, 3);
  EXPECT_EQ(
      refusal_of([&] { load_data({.dataset = dir.path(), .classes = 2}); }, dir.path()),
      "DIR/test_batch.bin, record 0: expected a class of 0 to 1 (cudp train --classes N if there "
      "are others), found 2");
}

TEST(Cifar, TestImagesAreNotATrainingBatch) {
  const TempFolder dir;
  for (int b = 1; b <= 5; ++b)
    dir.write("data_batch_" + std::to_string(b) + ".bin", cifar_record(1, 'x'));
  std::filesystem::create_symlink(dir.path() + "/data_batch_3.bin", dir.path() + "/test_batch.bin");
  EXPECT_EQ(load_refusal(dir, dir.path()),
            "DIR/test_batch.bin: expected test rows in a file of their own, found the file of the "
            "training rows, DIR/data_batch_3.bin");
}

TEST(Cifar, EveryFaultHasItsLine) {
  const auto refusal = [](const std::string& bytes) {
    return refusal_of([&] {
      read_cifar(
          *memory_bytes("f", {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}));
    });
  };
  EXPECT_EQ(refusal(""), "") << "how many records there are may be private";
  std::string records;
  for (int i = 0; i < 70; ++i) records += cifar_record(1, 'x');
  EXPECT_EQ(refusal(records), "");
  EXPECT_EQ(refusal(records + cifar_record(10, 'x')),
            "f, record 70: expected a label of 0 to 9, found 10");
  EXPECT_EQ(refusal(records + std::string("\1abc")),
            "f, record 70: expected 3073 bytes, found the end of the file after 4");
  const TempFolder dir;
  dir.write("data_batch_1.bin", cifar_record(1, 'x'));
  EXPECT_EQ(load_refusal(dir, "cifar-10"),
            "DIR: expected data_batch_2.bin, plain, .gz or .xz, found no such file");
}

TEST(Load, WhatIsNoDataSet) {
  EXPECT_EQ(refusal_of([] { load_data({.dataset = "minst"}); }),
            "dataset 'minst': expected glyphs, sentences, mnist, fashion-mnist, cifar-10, adult, "
            "bank, ipums-br, imdb, or the path of a folder, a table, or a .npy or .npz file, found "
            "no such file or folder; the nearest is 'mnist'");
  EXPECT_EQ(refusal_of([] { load_data({.dataset = "glyphs", .schema = "x.toml"}); }),
            "schema or test table: expected only with a table, found with glyphs");
  EXPECT_TRUE(is_named_dataset("bank"));
  EXPECT_FALSE(is_named_dataset("bank.csv"));
}

}  // namespace
}  // namespace cudp
