#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "runtime/base/error.hpp"

namespace cudp {

/// A parser may refuse its input as the user's error and in no other way.
template <class Parse>
int refuse_or_pass(const Parse& parse) {
  try {
    parse();
  } catch (const InputError&) {
  }
  return 0;
}

/// What holds of everything a parser lets through.
inline void must_hold(bool ok) {
  if (!ok) std::abort();
}

}  // namespace cudp
