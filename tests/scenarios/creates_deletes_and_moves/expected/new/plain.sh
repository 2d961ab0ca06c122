echo it does not
