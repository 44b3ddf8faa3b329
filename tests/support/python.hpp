#pragma once
// Functions for tests that run Python programs, if there is a Python with the modules they need.
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/temporary_folder.hpp"

namespace cudp {

/// Returns the command of a Python that has the modules ("numpy, onnxruntime"): that of PATH, or
/// the distribution's. Empty if neither has them.
inline std::string python_with(const std::string& modules) {
  for (const char* const python : {"python3", "/usr/bin/python3"}) {
    const std::string command =
        std::string(python) + " -c 'import " + modules + "' >/dev/null 2>&1";
    if (std::system(command.c_str()) == 0) return python;
  }
  return "";
}

/// Exit code and output of a shell command.
struct ShellResult {
  int exit = -1;
  std::string out;
  std::string err;
};

inline ShellResult run_shell(const TemporaryFolder& folder, const std::string& command) {
  const int status = std::system(
      ("(" + command + ") >" + (folder / "shell.out") + " 2>" + (folder / "shell.err")).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content_of(folder / "shell.out"),
          content_of(folder / "shell.err")};
}

}  // namespace cudp
