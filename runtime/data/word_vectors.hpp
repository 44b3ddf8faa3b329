#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/bytes.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/vocabulary.hpp"

namespace cudp {

/// A public embedding table (e.g. GloVe), read from a file.
struct VectorTable {
  WordVectors vectors;
  std::vector<std::string> words;  ///< words of the rows; empty if the file does not name them
  std::string digest;              ///< SHA-256 of the uncompressed file, hexadecimal
  std::string source;              ///< name of the file, for error messages
};

/// Reads vectors from a .safetensors file (one matrix of F32 or F16 numbers: `tensor`, or the only
/// one) or from GloVe's text format (one word a line, followed by its numbers, separated by
/// blanks). The first bytes decide which format it is. Throws InputError, with the line or the
/// tensor's name, if the file is malformed or has no such matrix.
VectorTable read_vectors(ByteReader& reader, const std::string& tensor);

/// Replaces the vectors by their first `dims` principal components: subtracts the mean, projects,
/// and scales the results to a root mean square of 0.4, whatever the scale of the table. Each
/// direction of the projection has the sign with which its entry of largest absolute value is
/// positive. A table with `dims` columns is not changed. Throws InputError if there are fewer
/// columns.
void reduce(VectorTable& table, int dims);

/// Returns the embedding vectors in the order of the vocabulary's ids; special ids get zeros.
/// If the table's rows have words, a word gets the vector of its row. A word without a row gets the
/// mean of the rows of its parts: its WordPieces if the table has such, otherwise its stem and its
/// ending (don't = do + n't). If the table lacks the parts, the word gets zeros.
/// If the rows have no words, row k belongs to word k. Throws InputError if there are then fewer
/// rows than words.
std::shared_ptr<const WordVectors> vectors_of(const Vocabulary& vocabulary,
                                              const VectorTable& table);

/// An English word with a contraction, such as don't, split as GloVe's tokenizer does: stem (do)
/// and ending (n't, 's, 're, 've, 'll, 'd or 'm). Both are empty if the word has no such ending.
struct Clitic {
  std::string_view stem;
  std::string_view ending;
};
Clitic split_clitic(std::string_view word);

}  // namespace cudp
