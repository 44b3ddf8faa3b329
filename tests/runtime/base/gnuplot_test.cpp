// Pictures that are drawn beside the program: complete or not at all, and no process stays.
#include "runtime/base/gnuplot.hpp"

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <set>

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "runtime/base/environment.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_files.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// A program in place of gnuplot while the object lives.
class FakeGnuplot {
 public:
  FakeGnuplot(const TemporaryFolder& folder, const std::string& body) {
    fs::create_directory(folder / "bin");
    write_text(folder / "bin/gnuplot", "#!/bin/sh\n" + body);
    fs::permissions(folder / "bin/gnuplot", fs::perms::owner_all);
    ::setenv("PATH", ((folder / "bin") + ":" + before_).c_str(), 1);
  }
  FakeGnuplot(const FakeGnuplot&) = delete;
  FakeGnuplot& operator=(const FakeGnuplot&) = delete;
  ~FakeGnuplot() { ::setenv("PATH", before_.c_str(), 1); }

 private:
  std::string before_ = std::getenv("PATH");
};

bool has_child() { return ::waitpid(-1, nullptr, WNOHANG) != -1; }

std::size_t files_in(const std::string& folder) {
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) files += entry.is_regular_file() ? 1 : 0;
  return files;
}

/// Contrast of a colour, "#rrggbb", with white (WCAG 2).
double contrast_with_white(const std::string& colour) {
  const auto part = [&](std::size_t at) {
    const double c = std::stoi(colour.substr(at, 2), nullptr, 16) / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 1.05 / (0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5) + 0.05);
}

TEST(Pictures, HaveLinesThatAreSeenOnWhite) {
  const std::string style = gnuplot_header("a title", {.width = 500, .height = 300});
  EXPECT_TRUE(style.starts_with("width = 500\nheight = 300\n"));
  EXPECT_TRUE(style.ends_with("set title 'a title'\n"));
  EXPECT_NE(style.find("set key outside"), std::string::npos);
  std::set<std::string> colours;
  for (int line = 1; line <= kLineByChance; ++line) {
    const std::string name = "set linetype " + std::to_string(line) + " lc rgb '";
    const std::size_t at = style.find(name);
    ASSERT_NE(at, std::string::npos) << name;
    const std::string colour = style.substr(at + name.size(), 7);
    EXPECT_TRUE(colours.insert(colour).second) << colour;
    EXPECT_GE(contrast_with_white(colour), 3.0) << colour;  // WCAG 1.4.11
  }
}

TEST(Pictures, AreDrawnSideBySide) {
  const TemporaryFolder folder;
  Pictures pictures;
  const std::string numbers(200'000, '\n');  // more than a pipe holds
  for (const char* name : {"a.png", "b.png", "c.png"})
    pictures.start(gnuplot_header(name) + numbers + "plot x\n", folder / name);
  if (!pictures.finish()) GTEST_SKIP() << "gnuplot is missing";
  EXPECT_FALSE(has_child());
  for (const char* name : {"a.png", "b.png", "c.png"})
    EXPECT_EQ(content_of(folder / name).substr(0, 4), "\x89PNG");
  EXPECT_EQ(files_in(folder.path()), 3u);
}

TEST(Pictures, ThatAreNotDrawnLeaveNothing) {
  const TemporaryFolder folder;
  Pictures pictures;
  pictures.start("this is no command of gnuplot\n", folder / "a.png");
  EXPECT_FALSE(pictures.finish());
  const FakeGnuplot fake(folder, "exit 0\n");
  EXPECT_FALSE(run_gnuplot("plot x\n", folder / "b.png"));
  EXPECT_EQ(files_in(folder.path()), 0u);
  fs::create_directory(folder / "c.png");
  EXPECT_THROW(pictures.start("plot x\n", folder / "c.png"), Error);
  EXPECT_FALSE(has_child());
}

TEST(Pictures, ThatNobodyWaitsForAreEnded) {
  const TemporaryFolder folder;
  const FakeGnuplot fake(folder, "sleep 60\n");
  const auto start = std::chrono::steady_clock::now();
  {
    Pictures pictures;
    pictures.start("plot x\n", folder / "a.png");
    EXPECT_TRUE(has_child());
    EXPECT_EQ(files_in(folder.path()), 1u);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  EXPECT_FALSE(has_child());
  EXPECT_EQ(files_in(folder.path()), 0u);
}

/// gnuplot may outlive a program that is killed, and draw after a resumed run has removed the
/// unfinished file.
TEST(Pictures, ThatWereRemovedAreNotMadeAgain) {
  const std::string gnuplot = Environment().find_program("gnuplot");
  if (gnuplot.empty()) GTEST_SKIP() << "gnuplot is missing";
  const TemporaryFolder folder;
  const std::string go = folder / "go";
  const FakeGnuplot late(
      folder, "while [ ! -e " + go + " ]; do sleep 0.01; done\nexec " + gnuplot + " \"$@\"\n");
  fs::create_directory(folder / "release");
  Pictures pictures;
  pictures.start(gnuplot_header("a title") + "plot x\n", folder / "release/a.png");
  EXPECT_EQ(files_in(folder / "release"), 1u);
  remove_unfinished_files(folder / "release");
  write_text(go, "");
  EXPECT_FALSE(pictures.finish());
  EXPECT_EQ(files_in(folder / "release"), 0u);
}

}  // namespace
}  // namespace cudp
