#pragma once

namespace cudp {

/// Where a training keeps the features of examples: in memory, or in a file from which each step
/// copies the rows that it draws. automatic: in a file if they would take more than half of the
/// available memory.
enum class RowsIn { automatic, memory, file };

}  // namespace cudp
