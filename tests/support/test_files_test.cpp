// Where tests find programs.
#include "tests/support/test_files.hpp"

#include <filesystem>

#include <gtest/gtest.h>

namespace cudp {
namespace {

TEST(TestFiles, AProgramThatWasBuiltElsewhereIsTheOneBesideTheTests) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_EQ(program_at(self), self);
  EXPECT_EQ(program_at("/of/another/machine" / self.filename()), self);
  EXPECT_EQ(program_at("/of/another/machine/cudp"), self.parent_path() / "cudp");
}

}  // namespace
}  // namespace cudp
