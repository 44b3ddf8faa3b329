#pragma once
// How tests go through settings made by machine: how many, which, and by how many processes.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/threads.hpp"
#include "tests/support/random_settings.hpp"
#include "tests/support/replayed_run.hpp"

namespace cudp {

inline constexpr unsigned kLongest = 120;  // seconds of a process

inline bool is_refusal(const Ended& e) { return e.exit == 2 || e.exit == 3; }

/// Number of lines that the program itself ends with.
inline int last_words(const std::string& err) {
  int lines = 0;
  std::istringstream all(err);
  for (std::string line; std::getline(all, line);) lines += line.starts_with("cudp: ") ? 1 : 0;
  return lines;
}

/// CUDP_SETTINGS, or 160: most pairs of levels are in the first ones (RandomSettings).
inline int how_many() {
  const char* times = std::getenv("CUDP_SETTINGS");
  return times != nullptr ? std::atoi(times) : 160;
}

/// Which settings chance makes: CUDP_SETTINGS_SEED, or else the same ones each time.
inline std::uint64_t seed_or(std::uint64_t usual) {
  const char* seed = std::getenv("CUDP_SETTINGS_SEED");
  return seed != nullptr ? std::strtoull(seed, nullptr, 10) : usual;
}

/// scripts/faults.py asks whether a fault is found at all: the first finding ends the search, ...
inline bool ends_at_first_fault() { return std::getenv("CUDP_FIRST_FAULT") != nullptr; }

/// ... and looks among settings of one kind: CUDP_SETTINGS_WITH=KEY=VALUE, several with commas.
inline constexpr int kMostTries = 200'000;
inline bool wants_one_kind() { return std::getenv("CUDP_SETTINGS_WITH") != nullptr; }
inline bool is_wanted(const RandomSettings& settings) {
  const char* text = std::getenv("CUDP_SETTINGS_WITH");
  std::istringstream wanted(text != nullptr ? text : "");
  for (std::string part; std::getline(wanted, part, ',');) {
    const std::size_t at = part.find('=');
    const std::string key = part.substr(0, at);
    const std::string value = at == std::string::npos ? "" : part.substr(at + 1);
    if (!(key == "data"     ? settings.data == value
          : key == "ending" ? settings.ending == value
                            : settings.has(key, value)))  // "*": any value
      return false;
  }
  return true;
}

/// Lets as many processes as there are cores, two at least, each do its part; returns how many.
inline int side_by_side(const std::function<void(int first, int every)>& part) {
  const int workers = std::max(2, available_cores());
  std::vector<pid_t> children;
  for (int w = 0; w < workers; ++w) {
    const pid_t child = ::fork();
    if (child == 0) {
      int code = 0;
      try {
        part(w, workers);
      } catch (const std::exception& error) {
        std::cerr << error.what() << std::endl;
        code = 1;
      }
      std::fflush(nullptr);
      ::_exit(code);  // never back into the tests
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  return workers;
}

}  // namespace cudp
