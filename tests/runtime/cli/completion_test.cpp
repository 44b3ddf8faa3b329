// What the program prints for shells and man: all commands and flags, as the shells read them.
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/cudp_process.hpp"
#include "tests/support/test_files.hpp"

namespace cudp {
namespace {

class Completion : public testing::Test {
 protected:
  std::string printed(const std::string& form) {
    const Finished f = run_cudp(folder_, {"completion", form});
    EXPECT_EQ(f.exit, 0) << f.err;
    return f.out;
  }
  TemporaryFolder folder_;
};

TEST_F(Completion, NamesCommandsFlagsAndValues) {
  for (const char* form : {"bash", "zsh", "fish", "man"}) {
    const std::string text = printed(form);
    for (const char* word : {"train", "calibrate", "predict", "epsilon", "resume"})
      EXPECT_NE(text.find(word), std::string::npos) << form << ": " << word;
    if (std::string(form) == "man") continue;
    for (const char* word : {"sentences-lstm", "adult", "momentum"})
      EXPECT_NE(text.find(word), std::string::npos) << form << ": " << word;
  }
}

TEST_F(Completion, RefusesAnotherForm) {
  const Finished f = run_cudp(folder_, {"completion", "tcsh"});
  EXPECT_EQ(f.exit, 2);
  EXPECT_NE(f.err.find("completion: expected bash, zsh, fish or man, found 'tcsh'"),
            std::string::npos)
      << f.err;
}

TEST_F(Completion, BashCompletes) {
  write_text(folder_ / "cudp.bash", printed("bash"));
  const auto completed = [&](const std::string& words) {
    write_text(folder_ / "ask.sh", ". '" + (folder_ / "cudp.bash") + "'\nCOMP_WORDS=(" + words +
                                       ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_cudp\n"
                                       "echo \"${COMPREPLY[*]}\"\n");
    const std::string out = folder_ / "out";
    EXPECT_EQ(std::system(("bash '" + (folder_ / "ask.sh") + "' > '" + out + "'").c_str()), 0);
    return content_of(out);
  };
  EXPECT_EQ(completed("cudp pre"), "predict\n");
  EXPECT_EQ(completed("cudp train --epsi"), "--epsilon\n");
  EXPECT_EQ(completed("cudp train --device cu"), "cuda\n");
  EXPECT_EQ(completed("cudp train --preset mnist-h"), "mnist-hf\n");
  EXPECT_EQ(completed("cudp calibrate --prese"), "\n");
}

TEST_F(Completion, ManFindsNoFault) {
  if (std::system("command -v groff > /dev/null") != 0) GTEST_SKIP() << "no groff";
  write_text(folder_ / "cudp.1", printed("man"));
  const std::string faults = folder_ / "faults";
  EXPECT_EQ(
      std::system(("groff -man -ww -z '" + (folder_ / "cudp.1") + "' 2> '" + faults + "'").c_str()),
      0);
  EXPECT_EQ(content_of(faults), "");
  const std::string page = folder_ / "page";
  ASSERT_EQ(std::system(("groff -man -Tascii -rLL=80n -P-c -P-b -P-u '" + (folder_ / "cudp.1") +
                         "' > '" + page + "'")
                            .c_str()),
            0);
  for (const std::string& line : lines_of(content_of(page))) EXPECT_LE(line.size(), 80u) << line;
}

}  // namespace
}  // namespace cudp
