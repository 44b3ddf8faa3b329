// cudp verify: rows that a forger hides in files of release/, where no page shows them.
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include "runtime/base/safetensors.hpp"
#include "runtime/verify/picture_file.hpp"
#include "tests/support/args.hpp"
#include "tests/support/cudp_process.hpp"
#include "tests/support/deflated.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

constexpr const char* kHiddenRow = "age 45, ill yes";

class HiddenRows : public testing::Test {
 protected:
  void SetUp() override {
    const Finished f = run_cudp(
        folder_, with(train_on_, args("--epsilon 3 --delta 1e-5 --model logistic --batch 40 "
                                      "--steps 5 --threads 1 --device cpu --quiet "
                                      "--size-is-public --seed 3")));
    ASSERT_EQ(f.exit, 0) << f.err;
    put_back();
    const Finished honest = verify();
    ASSERT_EQ(honest.exit, 0) << honest.out << honest.err;
  }
  fs::path file(const std::string& name) const { return fs::path(folder_ / "forged") / name; }
  void put_back() const {
    fs::remove_all(folder_ / "forged");
    fs::copy(folder_ / "run/release", folder_ / "forged");
  }
  Finished verify() const { return run_cudp(folder_, {"verify", folder_ / "forged"}); }
  /// Changes one file, and expects that the check with this name finds it.
  void expect_found(const std::string& name,
                    const std::function<std::string(const std::string&)>& how,
                    const std::string& part) const {
    SCOPED_TRACE(name + ": " + part);
    put_back();
    const std::string changed = how(content_of(file(name)));
    ASSERT_NE(changed, content_of(file(name)));
    write_text(file(name), changed);
    const Finished f = verify();
    EXPECT_TRUE(f.exit == 1 || f.exit == 2) << f.out << f.err;
    EXPECT_NE(one_line(f.out + f.err).find(part), std::string::npos) << f.out << f.err;
  }
  /// Returns the text with each run of white space as one space.
  static std::string one_line(const std::string& text) {
    std::string line;
    for (const char c : text)
      if (c != ' ' && c != '\n')
        line += c;
      else if (!line.ends_with(' '))
        line += ' ';
    return line;
  }

  TemporaryFolder folder_;
  SmallTable table_ = write_small_table(folder_, 400);
  Arguments train_on_ = {"train",       "--dataset", table_.table,   "--schema",
                         table_.schema, "--out",     folder_ / "run"};
};

TEST_F(HiddenRows, AreFoundInTheModelsFile) {
  const auto metadata = [](const std::string& key) {
    return [key](const std::string& bytes) {
      TensorFile model = decode_safetensors(bytes, "model");
      model.metadata[key] = kHiddenRow;
      return encode_safetensors(model);
    };
  };
  const std::string found = "expected the model as the program writes it";
  expect_found("model.safetensors", metadata("comment"), found);
  expect_found("model.safetensors", metadata("pixel-scal"), found);
  expect_found("model.safetensors", metadata("format"), found);
  // The header may end with spaces, and its texts may be spelt in other ways.
  const auto header = [](const std::string& end) {
    return [end](const std::string& bytes) {
      std::uint64_t length = 0;
      std::memcpy(&length, bytes.data(), sizeof length);
      std::string changed = bytes;
      changed.insert(sizeof length + length, end);
      length += end.size();
      std::memcpy(changed.data(), &length, sizeof length);
      return changed;
    };
  };
  expect_found("model.safetensors", header(" \t  \t\t "), found);
  expect_found(
      "model.safetensors", [](const std::string& bytes) { return bytes + "more"; },
      "bytes of data");
}

TEST_F(HiddenRows, AreFoundInSettingsMetricsAndTheCertificate) {
  const auto before = [](const std::string& text) {
    return [text](const std::string& content) { return text + content; };
  };
  const auto after = [](const std::string& text) {
    return [text](const std::string& content) { return content + text; };
  };
  expect_found("config.toml", before(std::string("# ") + kHiddenRow + "\n"), "config.toml:");
  expect_found("config.toml", after(std::string("\n# ") + kHiddenRow + "\n"), "config.toml:");
  expect_found(
      "metrics.jsonl",
      [](const std::string& content) {
        return "{\"age\": 45.0, " + content.substr(content.find('"'));
      },
      "metrics");
  expect_found("privacy.json", after("\t \t\t \t"), "privacy.json:");
  expect_found("schema.toml", after(std::string("# ") + kHiddenRow + "\n"), "schema.toml:");
  expect_found("NOT-FOR-RELEASE.txt", after(std::string(kHiddenRow) + "\n"),
               "NOT-FOR-RELEASE.txt:");
}

/// Another build may have written other settings, but no comments.
TEST_F(HiddenRows, AreFoundInSettingsOfAnotherBuild) {
  const auto other = [&](const std::string& comment) {
    put_back();
    auto certificate = nlohmann::ordered_json::parse(content_of(file("privacy.json")));
    certificate["build"]["commit"] = "0123456789ab";
    write_text(file("privacy.json"), certificate.dump(2) + "\n");
    const std::string settings = content_of(file("config.toml"));
    write_text(file("config.toml"), settings + comment);
    EXPECT_EQ(run_cudp(folder_, {"report", folder_ / "forged"}).exit, 0);
    return verify();
  };
  const Finished honest = other("");
  EXPECT_EQ(honest.exit, 0) << honest.out << honest.err;
  const Finished forged = other(std::string("# ") + kHiddenRow + "\n");
  EXPECT_EQ(forged.exit, 1) << forged.out << forged.err;
  EXPECT_NE(forged.out.find("settings file"), std::string::npos) << forged.out;
}

TEST_F(HiddenRows, LinksAreNoReleasedFiles) {
  put_back();
  fs::rename(file("model.safetensors"), folder_ / "elsewhere");
  fs::create_symlink(folder_ / "elsewhere", file("model.safetensors"));
  const Finished f = verify();
  EXPECT_EQ(f.exit, 1) << f.out << f.err;
  EXPECT_NE(one_line(f.out).find("model.safetensors: expected a file, found a link"),
            std::string::npos)
      << f.out;
}

std::string png_number(std::uint32_t n) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(n >> shift & 0xff);
  return bytes;
}

std::string part_of_picture(const std::string& kind, const std::string& content) {
  const std::string all = kind + content;
  const auto sum =
      ::crc32(0, reinterpret_cast<const Bytef*>(all.data()), static_cast<uInt>(all.size()));
  return png_number(static_cast<std::uint32_t>(content.size())) + all +
         png_number(static_cast<std::uint32_t>(sum));
}

const std::string kPng = "\x89PNG\r\n\x1a\n";
/// A picture of three by two pixels of red, green and blue.
std::string header_of_picture() {
  return part_of_picture("IHDR",
                         png_number(3) + png_number(2) + std::string("\x08\x02\x00\x00\x00", 5));
}
std::string pixels_of_picture(std::size_t bytes = 20) {
  return deflated(std::string(bytes, '\0'), MAX_WBITS);
}

TEST(PictureFiles, HaveWhatGnuplotWritesAndNoMore) {
  const std::string head = kPng + header_of_picture();
  const std::string pixels = part_of_picture("IDAT", pixels_of_picture());
  const std::string end = part_of_picture("IEND", "");
  const std::string background = part_of_picture("bKGD", std::string(6, '\0'));
  EXPECT_EQ(verify::check_picture(head + pixels + end), "");
  EXPECT_EQ(verify::check_picture(head + background + pixels + end), "");
  const std::string half = pixels_of_picture();
  EXPECT_EQ(verify::check_picture(head + part_of_picture("IDAT", half.substr(0, 5)) +
                                  part_of_picture("IDAT", half.substr(5)) + end),
            "");
  const std::string row = kHiddenRow;
  const std::string forged[] = {"",
                                row,
                                kPng,
                                head,
                                head + pixels,
                                head + pixels + end + row,
                                head + pixels + part_of_picture("IEND", row),
                                head + part_of_picture("tEXt", row) + pixels + end,
                                head + part_of_picture("bKGD", row) + pixels + end,
                                head + background + background + pixels + end,
                                head + header_of_picture() + pixels + end,
                                kPng + background + header_of_picture() + pixels + end,
                                head + part_of_picture("IDAT", pixels_of_picture() + row) + end,
                                head + part_of_picture("IDAT", pixels_of_picture(21)) + end,
                                head + part_of_picture("IDAT", pixels_of_picture(19)) + end,
                                head + part_of_picture("IDAT", row) + end,
                                head + end};
  for (const std::string& bytes : forged) EXPECT_NE(verify::check_picture(bytes), "");
  // A cut file, and a changed byte.
  const std::string whole = head + background + pixels + end;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NE(verify::check_picture(whole.substr(0, i)), "") << i;
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_NE(verify::check_picture(changed), "") << i;
  }
}

TEST_F(HiddenRows, AreFoundBehindAPicture) {
  if (!fs::exists(file("curves.png"))) GTEST_SKIP() << "gnuplot is missing";
  expect_found(
      "curves.png", [](const std::string& bytes) { return bytes + kHiddenRow; },
      "curves.png: expected nothing after the picture");
}

}  // namespace
}  // namespace cudp
