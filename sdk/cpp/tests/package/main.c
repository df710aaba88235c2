#include <stdio.h>

#include <playfield.h>

int main(void) {
    pf_tree tree;
    pf_value root, answer;
    int64_t number = 0;
    if (pf_json_parse(pf_str("{\"answer\": 42}"), &tree, &root) != PF_CODE_OK ||
        pf_value_get(root, pf_str("answer"), &answer) != PF_CODE_OK ||
        pf_value_i64(answer, &number) != PF_CODE_OK) {
        pf_text why = pf_error_message();
        fprintf(stderr, "%.*s\n", (int)why.length, (const char *)why.data);
        return 1;
    }
    pf_tree_free(tree);
    printf("%lld\n", (long long)number);
    return number == 42 ? 0 : 1;
}
