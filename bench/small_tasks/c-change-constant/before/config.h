#define NAME "Ada"
