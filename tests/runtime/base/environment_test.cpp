#include "runtime/base/environment.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_files.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

/// Changes an environment variable while the object lives.
class Changed {
 public:
  Changed(const char* name, const std::string& value) : name_(name), before_(std::getenv(name)) {
    ::setenv(name, value.c_str(), 1);
  }
  Changed(const Changed&) = delete;
  Changed& operator=(const Changed&) = delete;
  ~Changed() { ::setenv(name_, before_.c_str(), 1); }

 private:
  const char* name_;
  std::string before_;
};

TEST(Environment, FindsProgramsInTheFoldersOfPathInTheirOrder) {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b", "c"}) {
    fs::create_directory(folder / name);
    write_text(folder / std::string(name).append("/tool"), "#!/bin/sh\n");
  }
  for (const char* name : {"b", "c"})  // the one in a cannot be executed
    fs::permissions(folder / std::string(name).append("/tool"), fs::perms::owner_all);
  const std::string all =
      (folder / "none") + ":" + (folder / "a") + "::" + (folder / "b") + ":" + (folder / "c");
  const Changed path("PATH", all);
  const Environment found;
  EXPECT_EQ(found.find_program("tool"), folder / "b/tool");
  EXPECT_EQ(found.find_program("other"), "");
  ::setenv("PATH", (folder / "c").c_str(), 1);
  EXPECT_EQ(found.find_program("tool"), folder / "b/tool");  // a copy
  EXPECT_EQ(Environment().find_program("tool"), folder / "c/tool");
  ::setenv("PATH", "", 1);
  EXPECT_EQ(Environment().find_program("tool"), "");
}

TEST(Environment, HasTheVariablesOfTheTimeThatItWasCopied) {
  const Changed path("PATH", "one");
  const Environment copy;
  ::setenv("PATH", "two", 1);
  bool has_one = false;
  std::size_t count = 0;
  for (const char* variable : copy.variables()) {
    if (variable == nullptr) break;
    ++count;
    has_one = has_one || std::string(variable) == "PATH=one";
  }
  EXPECT_TRUE(has_one);
  EXPECT_EQ(copy.variables().size(), count + 1);
}

}  // namespace
}  // namespace cudp
